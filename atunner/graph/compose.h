// Makes graphs from graphs: a part of one, and one of several.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// By node: true if one of `wanted` is the node or is computed from it. Nodes for which `stops`
/// returns true count as inputs.
std::vector<bool> NeededFor(const ValidGraph& graph, const std::vector<NodeId>& wanted,
                            const std::function<bool(NodeId)>& stops = {});

/// The part of a graph that one output needs, without the other outputs and the inputs that only
/// they need. kInvalidInput if there is no output of that name.
Result<ValidGraph> OnlyOutput(const ValidGraph& graph, std::string_view name);

/// One graph of several: inputs with equal names become one input, and outputs are called
/// GRAPH_OUTPUT. kInvalidInput if inputs with equal names differ in type, or if two graphs have the
/// same name.
Result<ValidGraph> Together(std::string name, std::span<const ValidGraph> graphs);

}  // namespace atunner::graph
