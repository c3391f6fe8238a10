// Numbers that are equal for nodes that compute the same, whatever they are called.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

class NodeCodes {
 public:
  explicit NodeCodes(const ValidGraph& graph);
  /// By operation, types of operands and type; operands and names do not count.
  int32_t Of(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  /// The number of the type that a node's value has in memory, if it is stored as `dtype`.
  int32_t OfType(NodeId id, DType dtype) const {
    return types_[static_cast<size_t>(id)] * 64 + static_cast<int32_t>(dtype);
  }

 private:
  std::vector<int32_t> nodes_, types_;
};

}  // namespace atunner::graph
