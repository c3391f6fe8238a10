// Counters of launches on the GPU of the calling thread's context, by CUPTI's range profiler.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "atunner/base/result.h"

namespace atunner {

/// Launches whose counters are wanted. They are repeated for each pass.
struct CountedRun {
  std::function<Status()> prepare;  ///< before each pass, not counted: inputs, caches
  std::function<Status()> launch;   ///< counted; returns when the launches have ended
  size_t launches = 1;              ///< kernels that `launch` starts
};

struct MetricValues {
  std::vector<std::string> metrics;            ///< those of the wanted ones that the chip has
  std::vector<std::vector<double>> of_launch;  ///< a value a metric, for each launch in order
  size_t passes = 0;
};

/// The metrics of each launch of `run`. kUnavailable says why nobody may count here: no CUPTI, no
/// permission, another profiler. An error of `run` is passed on.
Result<MetricValues> CountMetrics(std::span<const std::string> metrics, const CountedRun& run);

}  // namespace atunner
