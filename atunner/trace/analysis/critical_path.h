// The chain of work that decided how long the run took: shortening anything else gains nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "atunner/trace/analysis/event_index.h"
#include "atunner/trace/timeline/intervals.h"

namespace atunner::trace {

enum class PathPart : uint8_t {
  kGpu,      ///< a kernel, copy or memory set
  kWaiting,  ///< between the end of what it depends on and the start of work on the GPU
  kHost,     ///< host code, charged to the innermost event
};
std::string_view Name(PathPart part);

struct PathSegment {
  Interval at;
  PathPart part = PathPart::kHost;
  uint32_t event = kNoEvent;  ///< kNoEvent: host code that the trace does not show
};

struct PathRow {
  PathPart part = PathPart::kHost;
  uint32_t name = 0;  ///< string id
  int64_t total = 0;  ///< nanoseconds
  uint64_t count = 0;
};

struct CriticalPath {
  std::vector<PathSegment> segments;  ///< in the order of time; they fill the window without gaps
  std::vector<PathRow> rows;          ///< by name, most time first
  int64_t TotalOf(PathPart part) const;
};

/// Walks back from the end of the window. Work on the GPU depends on what ended last before it: the
/// work before it on any stream of its device, or the call that submitted it. Host code depends on
/// what ran before on its thread; a call that waits depends on the work that ended last before its
/// end. Dependencies between streams that no event shows are assumed.
CriticalPath FindCriticalPath(const EventIndex& index, Interval window);

}  // namespace atunner::trace
