// Why two neighbouring groups are not one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "atunner/codegen/stages.h"
#include "atunner/fusion/fusion_plan.h"

namespace atunner::fusion {

/// The values between the stages, each with the reason that was found by asking for the cost of
/// both stages as one.
std::vector<Boundary> BoundariesOf(const Stages& stages, const Dims& sizes,
                                   const StageRules& rules);

/// Two graphs as one: the second's inputs that are called like outputs of the first take them.
/// Outputs of the first stay outputs if `kept` says so. kInvalidInput if names clash.
Result<graph::ValidGraph> Chained(const graph::ValidGraph& first, const graph::ValidGraph& second,
                                  const std::function<bool(const std::string& output)>& kept);

}  // namespace atunner::fusion
