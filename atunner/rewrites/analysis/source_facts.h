// What a kernel's source shows without running it: loops, accesses with their strides, and what
// costs time by itself.
//
// Strides are found by evaluating each subscript for two neighbouring threads or iterations. A
// subscript that calls a function, reads memory or depends on a branch has no known stride.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "atunner/rewrites/subject.h"

namespace atunner::rewrites {

struct LoopFact {
  int line = 0;
  int depth = 0;     ///< 0 = outermost
  std::string head;  ///< "int j = 0; j < cols; ++j"
  std::optional<int64_t> trips;
};

struct AccessFact {
  int line = 0;
  std::string array;
  std::string subscript;
  bool store = false;
  bool shared = false;  ///< shared or local memory; false: a pointer parameter
  /// Elements between the threads x and x + 1 of a block
  std::optional<int64_t> thread_stride;
  /// Elements between iterations of the innermost loop around it; nullopt also without a loop
  std::optional<int64_t> loop_stride;
};

struct SourceFacts {
  std::string kernel;
  std::vector<LoopFact> loops;
  std::vector<AccessFact> accesses;
  std::vector<int> barriers;  ///< lines
  std::vector<int> atomics;   ///< lines
  std::vector<int> doubles;   ///< lines with a literal or variable of type double
};

/// "coalesced", "broadcast", "strided" or "unknown".
std::string_view PatternOf(const AccessFact& access);

/// Sizes of the task and the launch's values give scalars their values.
SourceFacts FactsOf(const Subject& subject, const RenderedKernel& kernel, const KernelSpec& spec);

}  // namespace atunner::rewrites
