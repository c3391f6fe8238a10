// Graphs that no one kernel computes, as parts that follow one another.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Parts that `computes` accepts, in the order in which they run; one part where it accepts the whole. What a later
/// part takes from an earlier one is an output of the one and an input of the other, of the same name: the graph's own
/// name for it where it is an output of the graph anyway. Small values that inputs alone say are computed again
/// wherever they are needed. Of all ways to divide the nodes in the order in which they are needed, the one with least
/// traffic, where a launch costs as much as some megabytes. nullopt where there is none, and where sizes are open.
std::optional<std::vector<ValidGraph>> Divide(const ValidGraph& graph,
                                              const std::function<bool(const ValidGraph&)>& computes);

}  // namespace atunner::graph
