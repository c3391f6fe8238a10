// What a graph would cost if each of its nodes were a kernel of its own.
#pragma once

#include <cstddef>

#include "atunner/graph/graph.h"
#include "atunner/model/value/value.h"

namespace atunner::fusion {

struct Traffic {
  size_t launches = 0;
  double bytes = 0;  ///< read and written
};

/// Bytes of a value at these sizes.
double BytesOf(const graph::TensorType& type, const Dims& sizes);

/// True for a node that is a view, or a value that kernels compute again: inputs, constants,
/// reshapes, transposes, slices, windows, reversed axes and padding.
bool IsView(const graph::Node& node);

/// The node whose stored value `id` is a view of.
graph::NodeId StoredNode(const graph::ValidGraph& graph, graph::NodeId id);

/// One launch for each node that is no view. It reads each stored value that it needs once, and
/// writes its result.
Traffic TrafficOfNodes(const graph::ValidGraph& graph, const Dims& sizes);

}  // namespace atunner::fusion
