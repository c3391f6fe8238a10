// The epilogues of convolutions whose results have their channels first.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Puts a map that takes the transposed result of a convolution without groups before the
/// transpose, so that it can be part of the kernel that multiplies. The map must be the transpose's
/// only user. `graph` must have gone through WithCanonicalMatmuls.
ValidGraph WithMapsBeforeTransposes(const ValidGraph& graph);

}  // namespace atunner::graph
