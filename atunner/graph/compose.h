// Graphs from graphs: a part of one, and several as one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// By node: is one of `wanted` computed from it, or itself? What `stops` says to be at hand is
/// computed from nothing.
std::vector<bool> NeededFor(const ValidGraph& graph, const std::vector<NodeId>& wanted,
                            const std::function<bool(NodeId)>& stops = {});

/// The part of a graph that one output needs: other outputs go, and inputs that only they need.
/// kInvalidInput where there is no output of that name.
Result<ValidGraph> OnlyOutput(const ValidGraph& graph, std::string_view name);

/// All graphs as one: inputs of the same name become one, and outputs are called GRAPH_OUTPUT.
/// kInvalidInput where inputs of the same name have other types, or two graphs have the same name.
Result<ValidGraph> Together(std::string name, std::span<const ValidGraph> graphs);

}  // namespace atunner::graph
