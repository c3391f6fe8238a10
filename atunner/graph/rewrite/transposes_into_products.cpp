// Transposed operands of contractions. PyTorch's attention makes
//
//     t = transpose(k, [0, 1, 3, 2])          k [4, 8, 64, 32], t [4, 8, 32, 64]
//     r = reshape(t, [32, 32, 64])
//     s = contract(q, r, "bmk,bkn->bmn")
//
// which becomes
//
//     r = reshape(k, [32, 64, 32])
//     s = contract(q, r, "bmk,bnk->bmn")
#include "atunner/graph/rewrite/transposes_into_products.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// By axis of `to`: the axes of `from` that it merges, or nothing if the reshape splits an axis.
std::optional<std::vector<std::vector<int64_t>>> MergedAxes(const Shape& from, const Shape& to) {
  std::vector<std::vector<int64_t>> merged;
  size_t at = 0;
  for (const Extent& extent : to) {
    auto& axes = merged.emplace_back();
    Extent product(1);
    while (at < from.size() && (axes.empty() || product != extent)) {
      product = product * from[at];
      axes.push_back(static_cast<int64_t>(at++));
    }
    if (product != extent) return std::nullopt;
  }
  return at == from.size() ? std::optional(std::move(merged)) : std::nullopt;
}

/// A value, and the order in which its axes are those of the operand that it replaces.
struct Turned {
  Value value;
  std::vector<int64_t> order;
};

/// True if the axes that both operands and the result share come first. Attention's heads are such
/// axes: a product whose heads lie between other axes would be transposed again.
bool BatchLeads(const Equation& equation, const std::string& letters) {
  const auto is_batch = [&](char letter) {
    return equation.left.find(letter) != std::string::npos &&
           equation.right.find(letter) != std::string::npos &&
           equation.result.find(letter) != std::string::npos;
  };
  return std::ranges::is_partitioned(letters, is_batch);
}

class TransposeAbsorber : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* contract = node.As<Contract>();
    if (!contract) return builder_.Copy(node, std::move(operands));
    const Equation equation = ParsedEquation(contract->equation);
    std::string letters[] = {equation.left, equation.right};
    for (size_t i = 0; i < 2; ++i) {
      const auto turned = BeforeTranspose(operands[i]);
      if (!turned) continue;
      // Axis a of the operand is axis order[a] of the value.
      std::string before(letters[i].size(), ' ');
      for (size_t axis = 0; axis < before.size(); ++axis)
        before[static_cast<size_t>(turned->order[axis])] = letters[i][axis];
      if (BatchLeads(equation, letters[i]) && !BatchLeads(equation, before)) continue;
      letters[i] = before;
      operands[i] = turned->value;
    }
    return builder_.Contract(letters[0] + "," + letters[1] + "->" + equation.result, operands[0],
                             operands[1], contract->as, contract->sparse);
  }

  std::optional<Turned> BeforeTranspose(Value operand) {
    const Node& node = builder_.NodeOf(operand);
    if (const auto* transpose = node.As<Transpose>())
      return Turned{{node.operands[0]}, transpose->order};
    if (!node.As<Reshape>()) return std::nullopt;
    const Node& inner = builder_.NodeOf({node.operands[0]});
    const auto* transpose = inner.As<Transpose>();
    return transpose ? Reshaped(node.type.shape, inner, *transpose) : std::nullopt;
  }

  /// Reshapes the transpose's operand in place of its result. Axes that are merged must lie side by
  /// side in the operand, in the same order.
  std::optional<Turned> Reshaped(const Shape& wanted, const Node& inner,
                                 const Transpose& transpose) {
    const auto merged = MergedAxes(inner.type.shape, wanted);
    if (!merged) return std::nullopt;
    std::vector<std::pair<int64_t, size_t>> firsts;  // of each group: its first axis before
    for (size_t axis = 0; axis < merged->size(); ++axis) {
      const auto& group = (*merged)[axis];
      if (group.empty()) return std::nullopt;
      for (size_t i = 0; i < group.size(); ++i) {
        const int64_t first = transpose.order[static_cast<size_t>(group[0])];
        if (transpose.order[static_cast<size_t>(group[i])] != first + static_cast<int64_t>(i))
          return std::nullopt;
      }
      firsts.emplace_back(transpose.order[static_cast<size_t>(group[0])], axis);
    }
    std::ranges::sort(firsts);
    Shape shape;
    std::vector<int64_t> order(firsts.size());
    for (size_t place = 0; place < firsts.size(); ++place) {
      shape.push_back(wanted[firsts[place].second]);
      order[firsts[place].second] = static_cast<int64_t>(place);
    }
    const NodeId source = inner.operands[0];
    return Turned{builder_.Reshape({source}, shape), std::move(order)};
  }
};

}  // namespace

ValidGraph WithTransposesInProducts(const ValidGraph& graph) {
  return TransposeAbsorber(graph).Run();
}

}  // namespace atunner::graph
