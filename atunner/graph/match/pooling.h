// What makes a graph pooling: sums, means and extremes of windows over the last one to three axes,
// with maps of single elements before and behind; and depthwise convolutions, which are sums of
// weighted windows.
#pragma once

#include <array>
#include <optional>

#include "atunner/graph/graph.h"
#include "atunner/graph/match/convolution.h"

namespace atunner::graph {

struct PoolingForm {
  ValidGraph graph;
  NodeId operand = 0;  ///< whose elements windows have: the input, or a map of it
  NodeId reduce = -1;  ///< or the contraction
  Combine op = Combine::kSum;
  Extent images;
  std::array<ConvAxis, 3> axes;  ///< depth, height, width; those that there are come last
  std::optional<ConvForm> conv;  ///< a depthwise convolution's
};

/// nullopt for graphs that are something else.
std::optional<PoolingForm> PoolingFormOf(const ValidGraph& graph);

}  // namespace atunner::graph
