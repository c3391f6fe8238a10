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

/// What the host needs for a pass and its update, in microseconds: no step is shorter. 0: unknown.
struct MeasuredHost {
  double pass_us = 0;
  double zero2_us = 0, zero3_us = 0;  ///< the same with `fully_shard`: for ZeRO 2 and 3
};

struct MeasuredPasses {
  std::vector<MeasuredPass> passes;  ///< by samples; empty: none
  MeasuredHost host;
};

/// {"measured": [{"samples": 8, "forward_ms": …, "backward_ms": …, "update_ms": …,
/// "blocks_ms": {"h.0": …}}, …], "host": {"pass_ms": …, "zero2_ms": …, "zero3_ms": …}}, as
/// bench/parallel_plans.py writes it; blocks_ms and host may be missing. kInvalidInput names the
/// place.
Result<MeasuredPasses> ReadMeasuredPasses(std::string_view json);

/// At another number of samples: on the line through the two nearest measured ones, or in
/// proportion to the only one. `passes` is not empty. Never less than a tenth of what the
/// proportion gives.
MeasuredPass PassAt(const std::vector<MeasuredPass>& passes, double samples);

}  // namespace atunner::planning
