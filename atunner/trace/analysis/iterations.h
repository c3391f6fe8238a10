// The steps of a training or serving loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/trace/analysis/event_index.h"
#include "atunner/trace/timeline/intervals.h"

namespace atunner::trace {

struct Iterations {
  /// Says where they come from: "annotation ProfilerStep#", "repetition of 41 kernels", "" if none
  /// were found.
  std::string found_by;
  std::vector<Interval> at;  ///< in the order of time
  int64_t Median() const;
  int64_t Longest() const;
};

/// Annotations of the profiler (ProfilerStep#3) come first, then annotations or NVTX ranges whose
/// names differ in a number only ("step 3"), then kernels that repeat: from one kernel to the same
/// one a period later, if at least nine tenths of the names agree. At least three are needed except
/// for annotations of the profiler.
Iterations FindIterations(const EventIndex& index);

}  // namespace atunner::trace
