// A graph that does the same to equal parts of its tensors, taken part by part: heads of attention,
// images of a batch.
#pragma once

#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// What the graph, whose extents are known, does to the first of `count` equal slices of all
/// inputs; the outputs are then the first slices of its outputs, and likewise for the others.
/// Slices are stretches of memory of row-major tensors. nullopt where parts have to do with each
/// other, or are not recognised: among others every input is cut.
std::optional<ValidGraph> SliceOf(const ValidGraph& graph, int64_t count);

/// Counts that may do, from the leading axes of the inputs; in ascending order.
std::vector<int64_t> SliceCounts(const ValidGraph& graph);

}  // namespace atunner::graph
