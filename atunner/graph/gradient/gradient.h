// Reverse-mode differentiation: one rule per kind of node and one derivative per scalar operator.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The graph that computes, for a scalar L of which the inputs `d<output>` give the derivatives by
/// `graph`'s float outputs, the derivatives of L by its float inputs: the outputs `d<input>`. It
/// takes graph's inputs and then the `d<output>`, and computes what it needs of `graph` again.
/// kUnsupported where a float input matters to an output through a node without a rule (scan_max,
/// scatter_max, …).
Result<ValidGraph> Gradient(const ValidGraph& graph);

/// d(body)/d(parameter) · g, over the body's parameters and, as the last one, g of the body's type.
/// nullopt where the derivative is zero everywhere it exists.
Result<std::optional<ScalarExpression>> Derivative(const ScalarExpression& body, int parameter);

}  // namespace atunner::graph
