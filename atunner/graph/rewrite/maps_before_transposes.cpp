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
#include <cstdint>
#include <optional>
#include <string>
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
      const auto turned = TurnedConvolution(node.operands[i], operands[i], node.type.shape);
      if (turned) return Moved(*map, operands, i, *turned);
    }
    return builder_.Copy(node, std::move(operands));
  }

  /// A convolution's product, with the filters last, and the order that its axes have where they
  /// are used.
  struct TurnedProduct {
    Value product;
    std::vector<int64_t> order;
  };

  /// The convolution that only this operand takes, perhaps through a reshape that adds axes of
  /// extent 1, as a single image has one.
  std::optional<TurnedProduct> TurnedConvolution(NodeId old, Value operand, const Shape& shape) {
    if (uses_[old] != 1 || builder_.TypeOf(operand).shape != shape) return std::nullopt;
    if (graph_.node(old).As<Reshape>() && builder_.NodeOf(operand).As<Reshape>()) {
      old = graph_.node(old).operands[0];
      operand = {builder_.NodeOf(operand).operands[0]};
      if (uses_[old] != 1 || WithoutOnes(shape) != builder_.TypeOf(operand).shape)
        return std::nullopt;
    }
    const Node& node = builder_.NodeOf(operand);
    if (const auto* transpose = node.As<Transpose>()) {
      const Value product{node.operands[0]};
      return IsConvolution(product, 0) ? std::optional(TurnedProduct{product, transpose->order})
                                       : std::nullopt;
    }
    return IsConvolution(operand, 1) ? std::optional(Swapped(operand)) : std::nullopt;
  }

  /// The product of windows and filters, for one of filters and windows.
  TurnedProduct Swapped(Value value) {
    const Node node = builder_.NodeOf(value);
    const auto& contract = *node.As<Contract>();
    const Equation equation = ParsedEquation(contract.equation);
    std::string result;
    std::vector<int64_t> order(equation.result.size());
    for (const std::string* side : {&equation.right, &equation.left}) {
      for (size_t axis = 0; axis < order.size(); ++axis) {
        if (!side->contains(equation.result[axis])) continue;
        order[axis] = static_cast<int64_t>(result.size());
        result += equation.result[axis];
      }
    }
    return {builder_.Contract(equation.right + "," + equation.left + "->" + result,
                              {node.operands[1]}, {node.operands[0]}, contract.as, contract.sparse),
            order};
  }

  static Shape WithoutOnes(Shape shape) {
    std::erase_if(shape, [](const Extent& extent) { return extent.one(); });
    return shape;
  }

  Value Moved(const Map& map, std::vector<Value> operands, size_t at, const TurnedProduct& turned) {
    const std::vector<int64_t>& order = turned.order;
    const Shape whole = builder_.TypeOf(operands[at]).shape;
    const bool squeezed = whole.size() != order.size();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i == at) continue;
      if (squeezed) operands[i] = Squeezed(operands[i], whole);
      operands[i] = Turned(operands[i], InverseOf(order));
    }
    operands[at] = turned.product;
    const Shape shape = builder_.TypeOf(operands[at]).shape;
    const Value made = builder_.Transpose(builder_.Map(map.body, std::move(operands), shape),
                                          order);
    return squeezed ? builder_.Reshape(made, whole) : made;
  }

  /// An operand that is broadcast to the shape `whole`, without the axes that have extent 1 there.
  Value Squeezed(Value operand, const Shape& whole) {
    const Shape& given = builder_.TypeOf(operand).shape;
    Shape shape;
    for (size_t axis = 0; axis < given.size(); ++axis) {
      if (!whole[whole.size() - given.size() + axis].one()) shape.push_back(given[axis]);
    }
    return builder_.Reshape(operand, shape);
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

  /// True for a contraction without groups whose operand number `of_windows` is made of windows.
  bool IsConvolution(Value value, size_t of_windows) const {
    const Node& product = builder_.NodeOf(value);
    const auto* contract = product.As<Contract>();
    if (!contract || !HasWindow(product.operands[of_windows])) return false;
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
