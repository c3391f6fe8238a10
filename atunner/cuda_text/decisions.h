// Data-dependent decisions of a graph: comparisons, argmax and sorts, and steps such as rounding to
// whole numbers. If the deciding value is itself computed, the last digit of a rounding may change
// the decision, and with it the result by any amount. The verifier must know where that can happen.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// True if the graph decides something by a computed, and therefore rounded, float.
bool HasDataDependentDecisions(const ValidGraph& graph);

/// The same graph in which every value that decides inside of an expression is a node:
/// `y = round(x / scale)` becomes `d = x / scale`, `y = round(d)`. The verifier can then perturb d.
ValidGraph WithDecisionOperandsStored(const ValidGraph& graph);

/// True if the elements of a node are indices, or are picked or computed from indices alone. A
/// wrong index is not nearly right, whatever its distance from the right one.
bool IsIndexValued(const ValidGraph& graph, NodeId id);

}  // namespace atunner::graph
