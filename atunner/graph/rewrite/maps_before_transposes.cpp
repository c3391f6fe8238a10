// A convolution of channels first, as PyTorch has it:
//
//     s = contract(taps, w, "npqcuv,kcuv->npqk")     t = transpose(s, [0, 3, 1, 2])
//     y = t * reshape(scale, [16, 1, 1])             scale [16]
//
// becomes
//
//     z = s * reshape(scale, [1, 1, 1, 16])          y = transpose(z, [0, 3, 1, 2])
#include "atunner/graph/rewrite/maps_before_transposes.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

bool ReadsPlaces(const ScalarExpression& body) {
  return body.Uses(ScalarOp::kIndex) || body.Uses(ScalarOp::kExtent);
}

/// The axes of the transposed value that are the axes of the value before.
std::vector<int64_t> InverseOf(const std::vector<int64_t>& order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t axis = 0; axis < order.size(); ++axis)
    inverse[static_cast<size_t>(order[axis])] = static_cast<int64_t>(axis);
  return inverse;
}

class MapMover : public Rewriter {
 public:
  explicit MapMover(const ValidGraph& graph) : Rewriter(graph), uses_(graph.UseCounts()) {}

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    if (!map || ReadsPlaces(map->body)) return builder_.Copy(node, std::move(operands));
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool only = uses_[node.operands[i]] == 1;
      if (only && IsTurnedConvolution(operands[i]) &&
          builder_.TypeOf(operands[i]).shape == node.type.shape)
        return Moved(*map, operands, i);
    }
    return builder_.Copy(node, std::move(operands));
  }

  Value Moved(const Map& map, std::vector<Value> operands, size_t turned) {
    const Node transpose = builder_.NodeOf(operands[turned]);
    const auto order = transpose.As<Transpose>()->order;
    const std::vector<int64_t> inverse = InverseOf(order);
    for (size_t i = 0; i < operands.size(); ++i)
      operands[i] = i == turned ? Value{transpose.operands[0]} : Turned(operands[i], inverse);
    const Shape shape = builder_.NodeOf(Value{transpose.operands[0]}).type.shape;
    return builder_.Transpose(builder_.Map(map.body, std::move(operands), shape), order);
  }

  /// An operand that is broadcast to the map's shape, with its axes in the order of the product.
  Value Turned(Value operand, const std::vector<int64_t>& inverse) {
    Shape shape = builder_.TypeOf(operand).shape;
    if (shape.empty()) return operand;
    shape.insert(shape.begin(), inverse.size() - shape.size(), Extent(1));
    Shape turned;
    std::vector<int64_t> kept;  // axes of more than one element, in their new order
    for (const int64_t axis : inverse) {
      turned.push_back(shape[static_cast<size_t>(axis)]);
      if (!turned.back().one()) kept.push_back(axis);
    }
    if (std::ranges::is_sorted(kept)) return builder_.Reshape(operand, turned);
    return builder_.Transpose(builder_.Reshape(operand, shape), inverse);
  }

  /// True for the transposed result of a contraction of windows without groups.
  bool IsTurnedConvolution(Value value) const {
    const Node& node = builder_.NodeOf(value);
    if (!node.As<Transpose>()) return false;
    const Node& product = builder_.NodeOf({node.operands[0]});
    const auto* contract = product.As<Contract>();
    if (!contract ||
        !std::ranges::any_of(product.operands, [&](NodeId id) { return HasWindow(id); }))
      return false;
    const Equation equation = ParsedEquation(contract->equation);
    return std::ranges::none_of(equation.result, [&](char letter) {
      return equation.left.contains(letter) && equation.right.contains(letter);
    });
  }
  bool HasWindow(NodeId id) const {
    const Node& node = builder_.NodeOf({id});
    if (node.As<Window>()) return true;
    const bool moves = node.As<Reshape>() || node.As<Transpose>() || node.As<Pad>();
    return moves && HasWindow(node.operands[0]);
  }

  std::vector<int> uses_;
};

}  // namespace

ValidGraph WithMapsBeforeTransposes(const ValidGraph& graph) { return MapMover(graph).Run(); }

}  // namespace atunner::graph
