// Finds independent equal slices of a graph, such as the heads of attention or the images of a
// batch, so that a large task can be evaluated slice by slice.
#pragma once

#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The graph for one of `count` slices: applied to slice i of every input it computes slice i of
/// every output. A slice is a contiguous part of a row-major tensor. Inputs that all slices need
/// whole keep their shape, e.g. the filters of a convolution. The graph must have no symbols.
/// nullopt if slices depend on each other or that is not known.
///
/// Example: softmax over the last axis of x [8, 4, C] with 32 slices is softmax of x [1, 1, C].
/// Example: conv of x [8, C, H] and w [K, C, R] with 8 slices is conv of x [1, C, H] and w.
std::optional<ValidGraph> SliceOf(const ValidGraph& graph, int64_t count);

/// The counts that SliceOf may accept, by the leading axes of the inputs, in ascending order.
std::vector<int64_t> SliceCounts(const ValidGraph& graph);

}  // namespace atunner::graph
