// Recognises pooling: sums, means, maxima and minima of windows over the last one to three axes,
// with element-wise maps before and behind. Depthwise convolutions are pooling with weights.
#pragma once

#include <array>
#include <optional>

#include "atunner/graph/graph.h"
#include "atunner/graph/match/convolution.h"

namespace atunner::graph {

struct PoolingForm {
  ValidGraph graph;
  NodeId operand = 0;  ///< the windows are over its elements: the input, or a map of it
  NodeId reduce = -1;  ///< the reduction of the windows, or the contraction with weights
  Combine op = Combine::kSum;
  Extent images;
  std::array<ConvAxis, 3> axes;  ///< depth, height, width; those that there are come last
  std::optional<ConvForm> conv;  ///< set for a depthwise convolution
};

/// nullopt if the graph is anything else.
std::optional<PoolingForm> PoolingFormOf(const ValidGraph& graph);

}  // namespace atunner::graph
