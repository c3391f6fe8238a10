// Parallel plans as text, as JSON and as settings of PyTorch.
#pragma once

#include <string>

#include "atunner/model/json/json.h"
#include "atunner/planning/parallel/parallel_plan.h"

namespace atunner::planning {

/// "2 stages x tensor 2 x data 2, ZeRO 1, 8 microbatches"
std::string ToString(const ParallelStrategy& strategy);

/// The plan; with `explain` also assumptions, the parts of the step, and the next best strategies.
std::string TextOf(const ParallelRequest& request, const ParallelPlans& plans, bool explain);

/// Settings of PyTorch's DDP or FSDP, of checkpointing, tensor and pipeline parallelism, by the
/// names of their arguments.
Json TorchSettings(const ParallelRequest& request, const ParallelPlan& plan);

Json ToJson(const ParallelRequest& request, const ParallelPlans& plans);

}  // namespace atunner::planning
