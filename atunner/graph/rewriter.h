// The base class of passes that make a new graph of an old one, node by node.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// True if an expression only casts, or reads indices and literals: that is cheaper to compute
/// again than to store.
inline bool IsFree(const ScalarExpression& body) {
  return std::ranges::all_of(body.nodes(), [](const ScalarNode& node) {
    return ArityOf(node.op) == 0 || node.op == ScalarOp::kCast;
  });
}

/// The base of rewrites. Run visits the nodes in order and builds a new graph of what Rewrite
/// returns for each of them; inputs and outputs keep their names and order. Nodes that no output
/// needs are left out.
class Rewriter {
 public:
  explicit Rewriter(const ValidGraph& graph)
      : graph_(graph), builder_(graph.name()), needed_(graph.nodes().size(), false) {
    for (const auto& output : graph.outputs()) needed_[output.node] = true;
    for (size_t id = needed_.size(); id-- > 0;) {
      for (NodeId operand : graph.nodes()[id].operands)
        needed_[operand] = needed_[operand] || needed_[id];
    }
  }
  virtual ~Rewriter() = default;

  ValidGraph Run() {
    for (const auto& [name, range] : graph_.symbols())
      ATUNNER_CHECK(builder_.Symbol(name, range).has_value());
    for (size_t id = 0; id < graph_.nodes().size(); ++id)
      values_.push_back(Make(static_cast<NodeId>(id)));
    for (const auto& output : graph_.outputs()) builder_.Output(output.name, values_[output.node]);
    auto result = std::move(builder_).Finish();
    ATUNNER_CHECK(result.has_value());
    return *std::move(result);
  }

 protected:
  /// The value that takes the place of node `id`; `operands` are the new values of its operands.
  virtual Value Rewrite(NodeId id, std::vector<Value> operands) = 0;
  /// The shape of an input in the new graph; it must have as many elements as before.
  virtual Shape InputShape(NodeId id) { return graph_.node(id).type.shape; }

  bool NameIsFree(const std::string& name) { return names_.insert(name).second; }
  const ValidGraph& graph_;
  GraphBuilder builder_;
  std::vector<bool> needed_;
  std::vector<Value> values_;  ///< by id in the old graph

 private:
  /// The new value of a node; an empty one if no output needs it.
  Value Make(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.As<Input>()) return builder_.Input(node.name, {node.type.dtype, InputShape(id)});
    if (!needed_[id]) return {};
    std::vector<Value> operands;
    for (NodeId operand : node.operands) operands.push_back(values_[operand]);
    const Value made = Rewrite(id, std::move(operands));
    const bool nameable = builder_.ok() && !builder_.NodeOf(made).As<Input>() && !node.name.empty();
    if (nameable && builder_.NodeOf(made).name.empty() && NameIsFree(node.name))
      builder_.Name(made, node.name);
    return made;
  }

  std::set<std::string> names_;
};

}  // namespace atunner::graph
