// What masks by places leave of a graph's products: causal attention, windows, triangles.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Of the elements that the selects of the graph's maps could drop, the share that they keep at
/// least, in [0, 1]: of sparse contractions no more products are needed. Where what is kept depends
/// on values too, nothing is known: 0. Where no select looks at places, or no contraction is
/// sparse: 1. `graph` has no open extents. Places are looked at on a lattice of up to 256 along an
/// axis.
double KeptShare(const ValidGraph& graph);

}  // namespace atunner::graph
