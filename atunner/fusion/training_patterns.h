// Fusions of training steps by name.
#pragma once

#include <vector>

#include "atunner/fusion/training.h"

namespace atunner::fusion {

/// Per node of the plan's graph: the phase that it belongs to.
std::vector<Phases> PhasesOfNodes(const graph::ValidGraph& graph,
                                  const std::vector<StepOutput>& outputs);

/// The named fusions of each group.
std::vector<NamedFusion> TrainingFusions(const FusionPlan& plan,
                                         const std::vector<StepOutput>& outputs,
                                         const std::vector<Phases>& phases);

}  // namespace atunner::fusion
