// How much of a graph's products masks leave over: causal attention, windows, triangles.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// A lower bound of the fraction of elements, in [0, 1], that the graph's index-only masks keep: a
/// select whose condition compares indices, such as `select(index(-1) <= index(-2), a, 0)`, keeps
/// half. Sparse contractions need no more products than that, so it scales their FLOP count. 0 if a
/// mask depends on values too, 1 if no select looks at indices or no contraction is sparse. The
/// graph must have no symbols. Long axes are sampled at 256 indices.
double MaskDensity(const ValidGraph& graph);

}  // namespace atunner::graph
