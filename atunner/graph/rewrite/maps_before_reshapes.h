// The epilogues of matrix products whose results get other axes.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Puts a map that takes a matrix product in another shape before the reshape, so that it can be
/// part of the kernel that multiplies. The last axis must stay, and the map must be the reshape's
/// only user.
ValidGraph WithMapsBeforeReshapes(const ValidGraph& graph);

}  // namespace atunner::graph
