// What makes a graph a transpose: one that takes another axis innermost, with maps of single
// elements before and behind.
#pragma once

#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

struct TransposeForm {
  ValidGraph graph;
  Shape extents;              ///< of the operand; neighbouring axes that stay neighbours are one
  std::vector<size_t> order;  ///< axis i of the result is axis order[i] of the operand

  size_t a() const { return extents.size() - 1; }  ///< innermost of the operand
  size_t b() const { return order.back(); }        ///< innermost of the result
  bool in_tile(size_t axis) const { return axis == a() || axis == b(); }
};

/// Of a graph whose maps are in their users; nullopt for graphs that are something else.
std::optional<TransposeForm> TransposeFormOf(const ValidGraph& graph);

}  // namespace atunner::graph
