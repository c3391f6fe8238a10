// Values of a graph's nodes as expressions, to recognise what they compute whatever maps it is spread over.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner {

/// A node's value as one expression over what is no map, whose parameter numbers are node ids: equal values are equal
/// nodes of the builder.
class InlinedValues {
 public:
  explicit InlinedValues(const graph::ValidGraph& graph) : graph_(graph), builder_(TypesOf(graph)) {}

  int Of(graph::NodeId id) {
    const graph::Node& node = graph_.node(id);
    const auto* map = node.As<graph::Map>();
    if (!map || map->body.Uses(graph::ScalarOp::kIndex) || map->body.Uses(graph::ScalarOp::kExtent))
      return builder_.Parameter(id);
    std::vector<int> arguments;
    for (graph::NodeId operand : node.operands) arguments.push_back(Of(operand));
    return builder_.Import(map->body, arguments).value_or(builder_.Parameter(id));
  }
  const graph::ScalarNode& At(int value) const { return builder_.node(value); }
  /// m, if the value is x - m and `operand_of(m)` is x. Nodes that `operand_of` does not know are -1.
  std::optional<graph::NodeId> Subtrahend(int value, const std::function<graph::NodeId(graph::NodeId)>& operand_of) {
    const graph::ScalarNode distance = builder_.node(value);
    if (distance.op != graph::ScalarOp::kSubtract) return std::nullopt;
    graph::ScalarNode centre = builder_.node(distance.args[1]);
    if (centre.op == graph::ScalarOp::kDetach) centre = builder_.node(centre.args[0]);
    if (centre.op != graph::ScalarOp::kParameter) return std::nullopt;
    const graph::NodeId x = operand_of(centre.number);
    return x >= 0 && Of(x) == distance.args[0] ? std::optional<graph::NodeId>(centre.number) : std::nullopt;
  }

  /// x - m, if the value is that but for equal infinities, where it is 0.
  std::optional<int> WhereDifferent(int value) const {
    const graph::ScalarNode choice = builder_.node(value);
    if (choice.op != graph::ScalarOp::kSelect) return std::nullopt;
    const graph::ScalarNode both = builder_.node(choice.args[0]), zero = builder_.node(choice.args[1]),
                            distance = builder_.node(choice.args[2]);
    if (both.op != graph::ScalarOp::kAnd || distance.op != graph::ScalarOp::kSubtract) return std::nullopt;
    const graph::ScalarNode infinite = builder_.node(both.args[0]), equal = builder_.node(both.args[1]);
    const bool same = infinite.op == graph::ScalarOp::kIsInf && infinite.args[0] == distance.args[0] &&
                      equal.op == graph::ScalarOp::kEqual && equal.args[0] == distance.args[0] &&
                      equal.args[1] == distance.args[1];
    const bool none = zero.op == graph::ScalarOp::kLiteral && zero.literal.whole == 0;
    return same && none ? std::optional<int>(choice.args[2]) : std::nullopt;
  }

 private:
  static std::vector<DType> TypesOf(const graph::ValidGraph& graph) {
    std::vector<DType> types;
    for (const graph::Node& node : graph.nodes()) types.push_back(node.type.dtype);
    return types;
  }
  const graph::ValidGraph& graph_;
  graph::ScalarBuilder builder_;
};

}  // namespace atunner
