// Replaces structures that kernels take by value by their members.
//
// Example: with struct Params { const float* x; int n; };
//
//     __global__ void scale(float* y, Params p) { … p.x[i] … p.n … }
//     Params p{x, 1024};                 scale<<<g, b>>>(y, p);
//
// becomes, on the same lines,
//
//     __global__ void scale(float* y, const float* p_x, int p_n) { … p_x[i] … p_n … }
//     const float* p_x = x; int p_n = 1024;    scale<<<g, b>>>(y, p_x, p_n);
//
// The stages that follow only know numbers and pointers. The source is rewritten step by step: a
// kernel with its launches, then host functions that pass the structure on, then local variables.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace atunner {

struct SourceApart {
  std::string text;  ///< the rewritten source, with the same line numbers
  /// Kernel name and a message about a parameter that was replaced.
  std::vector<std::pair<std::string, std::string>> notes;
  /// Types of function objects, by the names of the kernel and of its template parameter. The
  /// rewritten parameters no longer tell them.
  std::map<std::pair<std::string, std::string>, std::string> objects;
};

/// Rewrites the kernels whose structures consist of numbers, pointers, arrays and such structures;
/// other kernels stay.
SourceApart WithMembersApart(const std::string& source);

}  // namespace atunner
