// Values of a graph's nodes as expressions over all maps between them, for pattern matching: a
// softmax is recognised whether exp(x - m) is one map or two.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// Each value is a node of one builder, whose parameters are the graph's nodes that are not maps
/// (parameter number = node id). Equal values are the same node of the builder.
class InlinedValues {
 public:
  explicit InlinedValues(const ValidGraph& graph) : graph_(graph), builder_(TypesOf(graph)) {}

  int Of(NodeId id) {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    if (!map || map->body.Uses(ScalarOp::kIndex) || map->body.Uses(ScalarOp::kExtent))
      return builder_.Parameter(id);
    std::vector<int> arguments;
    for (NodeId operand : node.operands) arguments.push_back(Of(operand));
    return builder_.Import(map->body, arguments).value_or(builder_.Parameter(id));
  }
  const ScalarNode& At(int value) const { return builder_.node(value); }
  /// The node m, if the value is x - m and `operand_of(m)` is x; for example m = reduce_max(x).
  /// `operand_of` returns -1 for nodes that are no such reduction.
  std::optional<NodeId> Subtrahend(int value, const std::function<NodeId(NodeId)>& operand_of) {
    const ScalarNode distance = builder_.node(value);
    if (distance.op != ScalarOp::kSubtract) return std::nullopt;
    ScalarNode centre = builder_.node(distance.args[1]);
    if (centre.op == ScalarOp::kDetach) centre = builder_.node(centre.args[0]);
    if (centre.op != ScalarOp::kParameter) return std::nullopt;
    const NodeId x = operand_of(centre.number);
    return x >= 0 && Of(x) == distance.args[0] ? std::optional<NodeId>(centre.number)
                                               : std::nullopt;
  }

  /// The value x - m, if `value` is select(isinf(x) & x == m, 0, x - m).
  std::optional<int> WhereDifferent(int value) const {
    const ScalarNode choice = builder_.node(value);
    if (choice.op != ScalarOp::kSelect) return std::nullopt;
    const ScalarNode both = builder_.node(choice.args[0]), zero = builder_.node(choice.args[1]),
                     distance = builder_.node(choice.args[2]);
    if (both.op != ScalarOp::kAnd || distance.op != ScalarOp::kSubtract) return std::nullopt;
    const ScalarNode infinite = builder_.node(both.args[0]), equal = builder_.node(both.args[1]);
    const bool same = infinite.op == ScalarOp::kIsInf && infinite.args[0] == distance.args[0] &&
                      equal.op == ScalarOp::kEqual && equal.args[0] == distance.args[0] &&
                      equal.args[1] == distance.args[1];
    const bool none = zero.op == ScalarOp::kLiteral && zero.literal.whole == 0;
    return same && none ? std::optional<int>(choice.args[2]) : std::nullopt;
  }

 private:
  static std::vector<DType> TypesOf(const ValidGraph& graph) {
    std::vector<DType> types;
    for (const Node& node : graph.nodes()) types.push_back(node.type.dtype);
    return types;
  }
  const ValidGraph& graph_;
  ScalarBuilder builder_;
};

}  // namespace atunner::graph
