// Which nodes can be computed inside the kernel that needs them, element by element, and how much
// that costs.
#pragma once

#include <functional>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The cost of computing one element of a node in place, from tensors in memory.
struct InlineWork {
  /// Every node on the way is a map, a layout operation, a small table or a short sum
  bool possible = false;
  double loads = 1;  ///< upper bound of the stored elements that one element is computed from
};

/// Nodes for which `available` returns true are at hand without a load. Sums must have constant
/// extents. Example: for `exp(x) + mean(y, axis=1)` with 8 columns in y, one element takes 1 + 8
/// loads.
InlineWork InlineWorkOf(const ValidGraph& graph, NodeId from,
                        const std::function<bool(NodeId)>& available = {});

/// True if one element of `from` can be computed in place from at most `most` stored elements.
bool CanInline(const ValidGraph& graph, NodeId from, double most,
               const std::function<bool(NodeId)>& available = {});

}  // namespace atunner::graph
