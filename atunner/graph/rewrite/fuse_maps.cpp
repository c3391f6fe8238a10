// FuseMaps: a map is put into the map that uses it.
//
//     t = x + b            becomes      y = let t0 = x + b in t0 * exp(t0)
//     y = t * exp(t)
//
// t has one user and y's shape, so nothing is computed twice. A map that several others use stays a
// node, unless it only casts or reads indices (IsFree).
#include <algorithm>

#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

class Fuser : public Rewriter {
 public:
  Fuser(const ValidGraph& graph, bool through_roundings)
      : Rewriter(graph), uses_(graph.UseCounts()), through_roundings_(through_roundings) {}

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    if (!map) return builder_.Copy(node, std::move(operands));
    Operands all = Collected(node, operands);
    ScalarBuilder scalar(all.types);
    std::vector<int> arguments;
    for (size_t i = 0; i < operands.size(); ++i) {
      std::vector<int> inner;
      for (int number : all.numbers[i]) inner.push_back(scalar.Parameter(number));
      arguments.push_back(all.inlined[i] ? Inlined(scalar, builder_.NodeOf(operands[i]), inner)
                                         : inner[0]);
    }
    const auto body = scalar.Finish(scalar.Import(map->body, arguments).value()).value();
    return builder_.Map(body, std::move(all.values), map->shape);
  }

  /// The operands of a fused map.
  struct Operands {
    std::vector<Value> values;
    std::vector<DType> types;
    /// By operand of the map: whether its producer is inlined, and the numbers in `values` of the
    /// producer's operands, or of the operand itself
    std::vector<bool> inlined;
    std::vector<std::vector<int>> numbers;
  };
  Operands Collected(const Node& node, const std::vector<Value>& operands) const {
    Operands all;
    const auto take = [&](Value value) {
      all.values.push_back(value);
      all.types.push_back(builder_.TypeOf(value).dtype);
      return static_cast<int>(all.values.size()) - 1;
    };
    for (size_t i = 0; i < operands.size(); ++i) {
      const Node& producer = builder_.NodeOf(operands[i]);
      std::vector<int>& numbers = all.numbers.emplace_back();
      all.inlined.push_back(Inlines(node.operands[i], producer, node));
      if (!all.inlined[i])
        numbers = {take(operands[i])};
      else
        for (NodeId each : producer.operands) numbers.push_back(take({each}));
    }
    return all;
  }

  bool Inlines(NodeId old_producer, const Node& producer, const Node& user) const {
    const auto* map = producer.As<Map>();
    const TensorType& consumer = user.type;
    if (!map || (!through_roundings_ && Narrows(producer))) return false;
    if (map->body.Depth() + user.As<Map>()->body.Depth() > kDeepestExpression) return false;
    const bool free = IsFree(map->body);
    const bool only = uses_[old_producer] == 1 && producer.type.shape == consumer.shape;
    // An extent that the producer's expression reads must be the same here, or a constant.
    const bool known = std::ranges::all_of(producer.type.shape,
                                           [](const Extent& e) { return e.constant(); });
    return (free || only) &&
           (known || producer.type.shape == consumer.shape || !map->body.Uses(ScalarOp::kExtent));
  }

  /// True if the map's result is narrower than an operand of the same shape.
  bool Narrows(const Node& map) const {
    return std::ranges::any_of(map.operands, [&](NodeId operand) {
      const TensorType& type = builder_.TypeOf({operand});
      return type.shape == map.type.shape && SizeOf(map.type.dtype) < SizeOf(type.dtype);
    });
  }

  /// The producer's expression inside of the consumer's. Along an axis of extent 1, which is
  /// broadcast, the producer's index is always 0.
  static int Inlined(ScalarBuilder& scalar, const Node& producer, std::span<const int> arguments) {
    const Shape& shape = producer.type.shape;
    return scalar
        .Import(producer.As<Map>()->body, arguments,
                [&](const ScalarNode& place) {
                  const Extent& extent = shape[shape.size() + place.number];
                  if (place.op == ScalarOp::kExtent && extent.constant())
                    return scalar.Literal(DType::kInt64, Whole(extent.factor()));
                  if (place.op == ScalarOp::kExtent) return scalar.Extent(place.number);
                  return extent.one() ? scalar.Literal(DType::kInt64, Whole(0))
                                      : scalar.Index(place.number);
                })
        .value();
  }

  std::vector<int> uses_;
  bool through_roundings_;
};

}  // namespace

bool IsUnaryMap(const Node& node) {
  const auto* map = node.As<Map>();
  return map && node.operands.size() == 1 && !map->body.Uses(ScalarOp::kIndex) &&
         !map->body.Uses(ScalarOp::kExtent);
}

ValidGraph FuseMaps(const ValidGraph& graph, bool through_roundings) {
  return Simplify(Fuser(Simplify(graph), through_roundings).Run());
}

}  // namespace atunner::graph
