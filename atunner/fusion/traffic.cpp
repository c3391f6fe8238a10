#include "atunner/fusion/traffic.h"

#include <algorithm>
#include <set>

namespace atunner::fusion {

using graph::Node;
using graph::NodeId;
using graph::ValidGraph;

double BytesOf(const graph::TensorType& type, const Dims& sizes) {
  const auto count = graph::ElementCount(type.shape).Bound(sizes).factor();
  return static_cast<double>(count) * static_cast<double>(SizeOf(type.dtype));
}

bool IsView(const Node& node) {
  return node.As<graph::Input>() || node.As<graph::Constant>() || node.As<graph::Reshape>() ||
         node.As<graph::Transpose>() || node.As<graph::Slice>() || node.As<graph::Window>() ||
         node.As<graph::Reverse>() || node.As<graph::Pad>() ||
         (node.As<graph::Map>() && node.operands.empty());
}

NodeId StoredNode(const ValidGraph& graph, NodeId id) {
  while (IsView(graph.node(id)) && !graph.node(id).operands.empty())
    id = graph.node(id).operands[0];
  return id;
}

Traffic TrafficOfNodes(const ValidGraph& graph, const Dims& sizes) {
  Traffic traffic;
  for (const Node& node : graph.nodes()) {
    if (IsView(node)) continue;
    ++traffic.launches;
    traffic.bytes += BytesOf(node.type, sizes);
    std::set<NodeId> read;
    for (const NodeId operand : node.operands) read.insert(StoredNode(graph, operand));
    for (const NodeId stored : read) traffic.bytes += BytesOf(graph.node(stored).type, sizes);
  }
  return traffic;
}

}  // namespace atunner::fusion
