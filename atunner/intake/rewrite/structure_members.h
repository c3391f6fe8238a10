// Structures that kernels take by value, taken apart: `Params p` becomes one parameter for each of
// its members, in the kernel, in its launches, and in the host's code around them. What reads the
// source afterwards knows numbers and pointers alone.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace atunner {

struct SourceApart {
  std::string text;  ///< every line keeps its number
  /// What became of whose parameters, by the kernel's name.
  std::vector<std::pair<std::string, std::string>> notes;
  /// Types of function objects, which parameters no longer say, by the kernel's name and the
  /// template parameter's.
  std::map<std::pair<std::string, std::string>, std::string> objects;
};

/// Rewrites the kernels whose structures are plain lists of numbers, pointers and lists of these;
/// the others stay.
SourceApart WithMembersApart(const std::string& source);

}  // namespace atunner
