// Reverse-mode differentiation: one rule per kind of node and one derivative per scalar operator.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The gradient of `graph` as a graph (reverse mode). Its inputs are graph's inputs and, for each
/// float output y, dy = ∂L/∂y of some scalar L. Its outputs are dx = ∂L/∂x for each float input x.
/// Values of the forward graph that it needs are computed again. kUnsupported if a float input
/// reaches an output through an operation without a rule (scan_max, scatter_max, …).
Result<ValidGraph> Gradient(const ValidGraph& graph);

/// The expression ∂body/∂parameter · g over the body's parameters and one more, g, of the body's
/// type. nullopt if the derivative is zero wherever it exists.
Result<std::optional<ScalarExpression>> Derivative(const ScalarExpression& body, int parameter);

}  // namespace atunner::graph
