#include "atunner/cuda_text/decisions.h"

#include <algorithm>
#include <map>
#include <set>

#include "atunner/cuda_text/rounding.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// The nodes of an expression that are rounded floats and decide something in the same expression.
std::set<int> RoundedDeciders(const ScalarExpression& body) {
  const std::vector<ScalarNode>& nodes = body.nodes();
  std::vector<bool> rounded(nodes.size(), false);
  std::set<int> deciders;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool decides = Decides(nodes, nodes[i]);
    bool of_rounded = false;
    for (const int arg : nodes[i].args) {
      if (arg < 0 || !rounded[arg]) continue;
      of_rounded = true;
      if (decides) deciders.insert(arg);
    }
    rounded[i] = IsFloat(nodes[i].dtype) && !decides && (of_rounded || Rounds(nodes, nodes[i]));
  }
  return deciders;
}

class DecisionSplitter : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    const std::set<int> deciders = map ? RoundedDeciders(map->body) : std::set<int>{};
    if (deciders.empty()) return builder_.Copy(node, std::move(operands));
    std::vector<int> apart;  // the deciding nodes so far; each may depend on those before it
    for (const int decider : deciders) {
      const Value value = builder_.Map(Expression(map->body, operands, apart, decider), operands,
                                       map->shape);
      apart.push_back(decider);
      operands.push_back(value);
    }
    const int root = static_cast<int>(map->body.nodes().size()) - 1;
    return builder_.Map(Expression(map->body, operands, apart, root), operands, map->shape);
  }

  /// The expression of node `root` of a body, in which the nodes `apart` are further operands.
  ScalarExpression Expression(const ScalarExpression& body, const std::vector<Value>& operands,
                              const std::vector<int>& apart, int root) const {
    std::vector<DType> types;
    for (const Value operand : operands) types.push_back(builder_.TypeOf(operand).dtype);
    ScalarBuilder scalar(types);
    std::vector<int> arguments;
    for (size_t i = 0; i < operands.size(); ++i)
      arguments.push_back(scalar.Parameter(static_cast<int>(i)));
    std::map<int, int> known;
    for (size_t i = 0; i < apart.size(); ++i)
      known[apart[i]] = arguments[operands.size() - apart.size() + i];
    return scalar.Finish(scalar.ImportAll(body, arguments, known).value()[root]).value();
  }
};

}  // namespace

bool HasDataDependentDecisions(const ValidGraph& given) {
  const ValidGraph graph = WithDecisionOperandsStored(given);
  std::vector<bool> rounded;
  for (const Node& node : graph.nodes()) {
    const StepRounding rounding = RoundingOf(graph, node);
    bool of_rounded = false;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (!rounded[node.operands[i]]) continue;
      if (rounding.operands[i].reading == StepRounding::Reading::kAsIs) return true;
      of_rounded = true;
    }
    rounded.push_back(IsFloat(node.type.dtype) && (of_rounded || rounding.rounds));
  }
  return false;
}

ValidGraph WithDecisionOperandsStored(const ValidGraph& graph) {
  return Simplify(DecisionSplitter(graph).Run());
}

bool IsIndexValued(const ValidGraph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!IsWhole(node.type.dtype)) return false;
  if (node.As<Sort>()) return true;
  if (const auto* reduce = node.As<Reduce>()) {
    const bool picks = reduce->op == Combine::kMax || reduce->op == Combine::kMin;
    return reduce->op == Combine::kArgMax || reduce->op == Combine::kArgMin ||
           (picks && IsIndexValued(graph, node.operands[0]));
  }
  if (node.As<Contract>() || node.As<Fold>() || node.As<Scan>()) return false;
  return std::ranges::any_of(node.operands,
                             [&](NodeId operand) { return IsIndexValued(graph, operand); });
}

}  // namespace atunner::graph
