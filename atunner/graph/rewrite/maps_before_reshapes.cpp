// A linear layer with an activation, as PyTorch has it:
//
//     p = contract(x, w, "mk,nk->mn")     r = reshape(p, [8, 128, 3072])
//     y = gelu(r + bias)                  bias [3072]
//
// becomes
//
//     z = gelu(p + bias)                  y = reshape(z, [8, 128, 3072])
#include "atunner/graph/rewrite/maps_before_reshapes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

class MapsMover : public Rewriter {
 public:
  explicit MapsMover(const ValidGraph& graph) : Rewriter(graph), uses_(graph.UseCounts()) {}

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    if (node.As<Reshape>()) return Reshaped(operands[0], node.type.shape);
    const auto* map = node.As<Map>();
    if (!map || map->body.Uses(ScalarOp::kIndex) || map->body.Uses(ScalarOp::kExtent))
      return builder_.Copy(node, std::move(operands));
    for (size_t i = 0; i < operands.size(); ++i) {
      if (uses_[node.operands[i]] != 1 || !IsReshapedProduct(operands[i], node.type.shape))
        continue;
      const Shape flat = builder_.TypeOf(Inner(operands[i])).shape;
      if (auto moved = OperandsOf(node.type.shape, flat, operands))
        return Reshaped(builder_.Map(map->body, *std::move(moved), flat), node.type.shape);
    }
    return builder_.Copy(node, std::move(operands));
  }

  Value Inner(Value reshape) const { return {builder_.NodeOf(reshape).operands[0]}; }

  /// One reshape in place of two, and none that changes nothing.
  Value Reshaped(Value x, const Shape& shape) {
    while (builder_.NodeOf(x).As<Reshape>()) x = Inner(x);
    return builder_.TypeOf(x).shape == shape ? x : builder_.Reshape(x, shape);
  }

  bool IsReshapedProduct(Value value, const Shape& shape) const {
    const Node& node = builder_.NodeOf(value);
    if (!node.As<Reshape>() || node.type.shape != shape || shape.empty()) return false;
    const Shape& flat = builder_.TypeOf(Inner(value)).shape;
    return !flat.empty() && flat.back() == shape.back() && IsProduct(node.operands[0]);
  }

  /// True for a product, or a map of one.
  bool IsProduct(NodeId id) const {
    const Node& node = builder_.NodeOf({id});
    if (node.As<Contract>()) return true;
    return node.As<Map>() && std::ranges::any_of(node.operands, [&](NodeId operand) {
             return builder_.NodeOf({operand}).As<Contract>() != nullptr;
           });
  }

  static Shape WithoutOnes(Shape shape) {
    std::erase_if(shape, [](const Extent& extent) { return extent.one(); });
    return shape;
  }

  /// An operand that is broadcast to the shape `whole`, for the shape `flat`, which differs from it
  /// in axes of extent 1.
  Value Realigned(Value operand, const Shape& whole, const Shape& flat) {
    Shape given = builder_.TypeOf(operand).shape;
    given.insert(given.begin(), whole.size() - given.size(), Extent(1));
    Shape aligned;
    size_t at = 0;
    for (const Extent& extent : flat) {
      while (!extent.one() && whole[at].one()) ++at;
      aligned.push_back(extent.one() ? Extent(1) : given[at++]);
    }
    return Reshaped(operand, aligned);
  }

  /// The operands for a map of the shape `flat` in place of `whole`; nullopt if one has other axes
  /// than the last.
  std::optional<std::vector<Value>> OperandsOf(const Shape& whole, const Shape& flat,
                                               std::vector<Value> operands) {
    if (WithoutOnes(whole) == WithoutOnes(flat)) {
      for (Value& operand : operands) {
        if (!builder_.TypeOf(operand).shape.empty()) operand = Realigned(operand, whole, flat);
      }
      return operands;
    }
    for (Value& operand : operands) {
      const Node& node = builder_.NodeOf(operand);
      const Shape& shape = node.type.shape;
      const bool like_product = node.As<Reshape>() && builder_.TypeOf(Inner(operand)).shape == flat;
      if (like_product)
        operand = Inner(operand);
      else if (shape.size() > 1 || (shape.size() == 1 && !(shape[0] == flat.back())))
        return std::nullopt;
    }
    return operands;
  }

  std::vector<int> uses_;
};

}  // namespace

ValidGraph WithMapsBeforeReshapes(const ValidGraph& graph) { return MapsMover(graph).Run(); }

}  // namespace atunner::graph
