#include "atunner/graph/partition/node_codes.h"

#include <utility>

namespace atunner::graph {
namespace {

/// The digest of a graph of this node alone.
Digest DigestOfNode(const ValidGraph& graph, const Node& node) {
  GraphBuilder builder("node");
  for (const auto& [name, range] : graph.symbols())
    ATUNNER_CHECK(builder.Symbol(name, range).has_value());
  std::vector<Value> operands;
  for (const NodeId operand : node.operands)
    operands.push_back(
        builder.Input("a" + std::to_string(operands.size()), graph.node(operand).type));
  builder.Output("y", node.As<Input>() ? builder.Input("x", node.type)
                                       : builder.Copy(node, std::move(operands)));
  auto alone = std::move(builder).Finish();
  ATUNNER_CHECK(alone.has_value());
  return alone->ContentDigest();
}

}  // namespace

NodeCodes::NodeCodes(const ValidGraph& graph) {
  std::map<Digest, int32_t> nodes;
  std::map<std::string, int32_t> types;
  for (const Node& node : graph.nodes()) {
    const auto code = static_cast<int32_t>(nodes.size());
    nodes_.push_back(nodes.try_emplace(DigestOfNode(graph, node), code).first->second);
    const auto type = static_cast<int32_t>(types.size());
    types_.push_back(types.try_emplace(ToString(node.type.shape), type).first->second);
  }
}

}  // namespace atunner::graph
