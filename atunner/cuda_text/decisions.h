// What a graph decides by values that it computes: places of sorted results, comparisons, steps
// such as rounding to whole numbers. Which way such a decision goes may be a matter of the last
// digit.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Is something decided by a float that is computed, and so rounded?
bool HasDataDependentDecisions(const ValidGraph& graph);

/// The same graph in which what decides inside of an expression is a value of its own: `round(x /
/// scale)` in two steps.
ValidGraph WithDecisionOperandsStored(const ValidGraph& graph);

/// Are the value's elements places, or picked or computed from places alone? Of these none is
/// nearer than another.
bool IsIndexValued(const ValidGraph& graph, NodeId id);

}  // namespace atunner::graph
