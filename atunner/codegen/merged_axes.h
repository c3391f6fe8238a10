// Fewer axes: those that a whole graph treats as one become one, so that kernels divide less to know where they are.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner {

/// The same graph with its outermost axes merged, and its innermost ones, as far as no node tells them apart. Inputs
/// and outputs keep their elements in row-major order. A graph with nodes whose axes cannot be followed stays as it is.
graph::ValidGraph MergeAxes(const graph::ValidGraph& graph);

}  // namespace atunner
