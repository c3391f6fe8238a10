// A rewrite for baseline kernels: long reductions in two steps.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Splits reductions with fewer than 512 results of a million terms or more each, so that many
/// blocks share them. Floating-point sums are then added in another order.
ValidGraph WithSplitReductions(const ValidGraph& graph);

}  // namespace atunner::graph
