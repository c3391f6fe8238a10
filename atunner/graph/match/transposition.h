// Recognises transposes that move another axis innermost, with element-wise maps before and behind.
#pragma once

#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

struct TransposeForm {
  ValidGraph graph;
  /// Extents of the operand; neighbouring axes that stay neighbours are merged into one
  Shape extents;
  std::vector<size_t> order;  ///< axis i of the result is axis order[i] of the operand

  size_t a() const { return extents.size() - 1; }  ///< innermost axis of the operand
  size_t b() const { return order.back(); }        ///< innermost axis of the result
  bool in_tile(size_t axis) const { return axis == a() || axis == b(); }
};

/// `graph` must have gone through FuseMaps. nullopt if it is anything else than such a transpose.
std::optional<TransposeForm> TransposeFormOf(const ValidGraph& graph);

}  // namespace atunner::graph
