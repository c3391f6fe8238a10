#include "atunner/fusion/roundings.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "atunner/graph/rewriter.h"

namespace atunner::fusion {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ScalarNode;
using graph::ScalarOp;
using graph::ValidGraph;
using graph::Value;

bool IsNarrowFloat(DType dtype) { return IsFloat(dtype) && SizeOf(dtype) == 2; }

bool IsZero(const ScalarNode& node) {
  return node.op == ScalarOp::kLiteral && graph::ToReal(node.dtype, node.literal) == 0;
}

/// True if a result jumps where an operand is rounded. Rounding keeps the sign.
bool IsExact(const ScalarNode& node, std::span<const ScalarNode> nodes) {
  const auto argument = [&](size_t i) { return nodes[static_cast<size_t>(node.args[i])]; };
  switch (node.op) {
    case ScalarOp::kEqual:
    case ScalarOp::kNotEqual:
    case ScalarOp::kLess:
    case ScalarOp::kLessEqual:
    case ScalarOp::kGreater:
    case ScalarOp::kGreaterEqual:
      return !IsZero(argument(0)) && !IsZero(argument(1));
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
    case ScalarOp::kTrunc:
    case ScalarOp::kRound:
      return true;
    case ScalarOp::kCast:
      return IsFloat(argument(0).dtype) && !IsFloat(node.dtype);
    default:
      return false;
  }
}

/// By parameter: true if an exact operation depends on it.
std::vector<bool> ExactParameters(const graph::ScalarExpression& body) {
  const auto& nodes = body.nodes();
  std::vector<bool> exact(nodes.size(), false);
  std::vector<bool> parameters(body.parameters().size(), false);
  for (size_t id = nodes.size(); id-- > 0;) {
    const ScalarNode& node = nodes[id];
    exact[id] = exact[id] || IsExact(node, nodes);
    if (node.op == ScalarOp::kParameter && exact[id])
      parameters[static_cast<size_t>(node.number)] = true;
    const auto arity = static_cast<size_t>(graph::ArityOf(node.op));
    for (size_t i = 0; i < arity; ++i) {
      if (exact[id]) exact[static_cast<size_t>(node.args[i])] = true;
    }
  }
  return parameters;
}

bool Moves(const Node& node) {
  return node.As<graph::Reshape>() || node.As<graph::Transpose>() || node.As<graph::Slice>() ||
         node.As<graph::Pad>() || node.As<graph::Concat>() || node.As<graph::Reverse>() ||
         node.As<graph::Window>() || node.As<graph::Gather>();
}

bool Computes(const Node& node) {
  return (node.As<graph::Map>() && !node.operands.empty()) || node.As<graph::Reduce>() ||
         node.As<graph::Contract>() || node.As<graph::Scan>() || node.As<graph::Fold>() ||
         node.As<graph::Scatter>();
}

/// By node: why its value must be rounded; nullptr where it need not.
std::vector<const char*> ReasonsOf(const ValidGraph& graph, Roundings roundings) {
  std::vector<const char*> reasons(graph.nodes().size(), nullptr);
  for (size_t id = reasons.size(); id-- > 0;) {
    const Node& node = graph.nodes()[id];
    const auto mark = [&](size_t operand, const char* reason) {
      const char*& known = reasons[static_cast<size_t>(node.operands[operand])];
      if (known == nullptr) known = reason;
    };
    if (const auto* map = node.As<graph::Map>()) {
      if (reasons[id] != nullptr && graph::IsFree(map->body)) {  // a conversion
        for (size_t i = 0; i < node.operands.size(); ++i) mark(i, reasons[id]);
      }
      const std::vector<bool> exact = ExactParameters(map->body);
      for (size_t i = 0; i < exact.size(); ++i) {
        if (exact[i]) mark(i, "a comparison or an integer depends on it");
      }
    }
    const auto* reduce = node.As<graph::Reduce>();
    const bool index = reduce && (reduce->op == graph::Combine::kArgMax ||
                                  reduce->op == graph::Combine::kArgMin);
    if (index) mark(0, "the index of an extreme depends on it");
    if (node.As<graph::Sort>()) mark(0, "an order depends on it");
    if (Moves(node) && reasons[id] != nullptr) {
      for (size_t i = 0; i < node.operands.size(); ++i) mark(i, reasons[id]);
    }
  }
  for (size_t id = 0; id < reasons.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!IsNarrowFloat(node.type.dtype) || !Computes(node))
      reasons[id] = nullptr;
    else if (roundings == Roundings::kAll && reasons[id] == nullptr)
      reasons[id] = "all roundings are kept";
  }
  return reasons;
}

class Rounder : public graph::Rewriter {
 public:
  Rounder(const ValidGraph& graph, std::vector<const char*> reasons)
      : Rewriter(graph), reasons_(std::move(reasons)) {}

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const Value made = builder_.Copy(node, std::move(operands));
    if (reasons_[static_cast<size_t>(id)] == nullptr) return made;
    const std::string type(Name(node.type.dtype));
    return builder_.Map(fmt::format("cast(round_to(cast(a, float32), {0}), {0})", type), {made},
                        node.type.shape);
  }

  std::vector<const char*> reasons_;
};

}  // namespace

RoundedGraph WithRoundings(const ValidGraph& graph, Roundings roundings) {
  const std::vector<const char*> reasons = ReasonsOf(graph, roundings);
  if (std::ranges::all_of(reasons, [](const char* each) { return each == nullptr; }))
    return {graph, {}};
  RoundedGraph rounded{Rounder(graph, reasons).Run(), {}};
  for (size_t id = 0; id < reasons.size(); ++id) {
    if (reasons[id] == nullptr) continue;
    const Node& node = graph.nodes()[id];
    rounded.kept.push_back(
        fmt::format("{}: {}", node.name.empty() ? fmt::format("v{}", id) : node.name, reasons[id]));
  }
  return rounded;
}

}  // namespace atunner::fusion
