// What one GPU took for the passes of a model: measured, in place of the roofline of its kernels.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::planning {

/// One microbatch on one GPU, in microseconds.
struct MeasuredPass {
  double samples = 1;
  double forward_us = 0, backward_us = 0;
  double update_us = 0;                     ///< of the optimizer; it does not depend on the samples
  std::map<std::string, double> layers_us;  ///< forward passes of layers, by their names
};

/// {"measured": [{"samples": 8, "forward_ms": …, "backward_ms": …, "update_ms": …,
/// "blocks_ms": {"h.0": …}}, …]}, as bench/parallel_plans.py writes it. Sorted by samples.
/// kInvalidInput names the place.
Result<std::vector<MeasuredPass>> ReadMeasuredPasses(std::string_view json);

/// At another number of samples: on the line through the two nearest measured ones, or in proportion
/// to the only one. `passes` is not empty. Never less than a tenth of what the proportion gives.
MeasuredPass PassAt(const std::vector<MeasuredPass>& passes, double samples);

}  // namespace atunner::planning
