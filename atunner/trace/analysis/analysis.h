// Everything that is known about one trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/trace/analysis/critical_path.h"
#include "atunner/trace/analysis/device_time.h"
#include "atunner/trace/analysis/iterations.h"
#include "atunner/trace/analysis/memory_use.h"
#include "atunner/trace/analysis/tables.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// Owns nothing of the timeline, which must outlive it.
struct Analysis {
  const Timeline* timeline = nullptr;
  Interval window;  ///< whole iterations if there are any, else the whole trace
  Iterations iterations;
  DeviceTimes times;
  Tables tables;
  CriticalPath path;
  std::vector<MemoryUse> memory;
  int64_t overhead = 0;  ///< union of the profiler's own work in the window, nanoseconds

  /// Sums over all devices.
  DeviceTime Total() const;
};

Analysis Analyze(const Timeline& timeline);

}  // namespace atunner::trace
