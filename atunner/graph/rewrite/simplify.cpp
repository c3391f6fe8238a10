// Simplify: constants are folded, equal nodes become one, and layout operations that cancel go.
//
//     a = transpose(x, order=[1, 0])        becomes      y = x * 6
//     b = transpose(a, order=[1, 0])
//     y = b * two * 3                       (`two` is the constant 2)
#include <algorithm>
#include <map>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// Operations over constants are computed up to so many elements.
constexpr int64_t kLargestFolded = 4096;
/// Constant tensors of up to so many elements are written into the expressions that take them.
constexpr size_t kLongestSpelled = 16;

/// The element of a small constant tensor as an expression over indices. [5, 7, 9] becomes
/// `select(index(-1) == 0, 5, select(index(-1) == 1, 7, 9))`. The tensor's axes are the last ones
/// of the map that takes it.
int Spelled(ScalarBuilder& scalar, const Constant& table, const TensorType& type) {
  int place = scalar.Literal(DType::kInt64, Whole(0));
  int64_t stride = 1;
  for (int axis = -1; axis >= -static_cast<int>(type.shape.size()); --axis) {
    const int64_t extent = type.shape[type.shape.size() + axis].factor();
    if (extent == 1) continue;  // broadcast
    const int step = scalar.Literal(DType::kInt64, Whole(stride));
    const int along = scalar.Apply(ScalarOp::kMultiply, {scalar.Index(axis), step}).value();
    place = scalar.Apply(ScalarOp::kAdd, {place, along}).value();
    stride *= extent;
  }
  int value = scalar.Literal(type.dtype, table.values.back());
  for (size_t i = table.values.size() - 1; i-- > 0;) {
    const int number = scalar.Literal(DType::kInt64, Whole(static_cast<int64_t>(i)));
    const int here = scalar.Apply(ScalarOp::kEqual, {place, number}).value();
    value = scalar.Select(here, scalar.Literal(type.dtype, table.values[i]), value).value();
  }
  return value;
}

/// Copies the graph without the nodes that no output needs.
class Copier : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    return builder_.Copy(graph_.node(id), std::move(operands));
  }
};

class Simplifier : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    if (const auto* map = node.As<Map>())
      return Known(MapWithLiterals(*map, node.type, std::move(operands)));
    if (const auto known = Folded(node, operands)) return Known(*known);
    if (const auto simple = WithoutLayoutChanges(node, operands)) return *simple;
    if (const auto shorter = WithoutSingleExtents(node))
      return Known(builder_.Copy(*shorter, std::move(operands)));
    return Known(builder_.Copy(node, std::move(operands)));
  }

  /// A reduction that keeps its axes, without those of extent 1: instance norms reduce [1, N, …]
  /// over the first axis, too. nullopt where nothing changes, or no axis would be left.
  std::optional<Node> WithoutSingleExtents(const Node& node) const {
    const auto* reduce = node.As<Reduce>();
    if (reduce == nullptr || !reduce->keep) return std::nullopt;
    const Shape& shape = graph_.node(node.operands[0]).type.shape;
    Reduce shorter = *reduce;
    std::erase_if(shorter.axes, [&](int64_t axis) { return shape[axis].one(); });
    if (shorter.axes.empty() || shorter.axes.size() == reduce->axes.size()) return std::nullopt;
    Node changed = node;
    changed.operation = std::move(shorter);
    return changed;
  }

  /// An equal node that was built before, or else `value`.
  Value Known(Value value) {
    const Node& node = builder_.NodeOf(value);
    for (const Value other : seen_[{node.operation.index(), node.operands}]) {
      const Node& before = builder_.NodeOf(other);
      if (before.operation == node.operation && before.type == node.type) return other;
    }
    seen_[{node.operation.index(), node.operands}].push_back(value);
    return value;
  }

  const Constant* ConstantOf(Value value) const { return builder_.NodeOf(value).As<Constant>(); }

  Value MapWithLiterals(const Map& map, const TensorType& type, std::vector<Value> operands) {
    ScalarBuilder scalar(map.body.parameters());
    std::vector<int> arguments;
    bool every = true;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Constant* constant = ConstantOf(operands[i]);
      const bool few = constant && constant->values.size() <= kLongestSpelled;
      every &= constant != nullptr;
      arguments.push_back(few ? Spelled(scalar, *constant, builder_.TypeOf(operands[i]))
                              : scalar.Parameter(static_cast<int>(i)));
    }
    const auto body = scalar.Finish(scalar.Import(map.body, arguments).value()).value();
    if (body.root().op == ScalarOp::kLiteral) return builder_.Constant(type, {body.root().literal});
    if (every && !operands.empty()) {
      if (const auto folded = Folded({map, {}, type, {}}, operands)) return *folded;
    }
    return builder_.Map(body, std::move(operands), map.shape);
  }

  /// The value of a node whose operands are all small constants.
  std::optional<Value> Folded(const Node& node, const std::vector<Value>& operands) {
    const Extent count = ElementCount(node.type.shape);
    const bool small = count.constant() && count.factor() <= kLargestFolded;
    const bool constants = std::ranges::all_of(
        operands, [this](Value v) { return ConstantOf(v) != nullptr; });
    if (operands.empty() || !small || !constants) return std::nullopt;
    GraphBuilder alone("constant");
    std::vector<Value> inside;
    for (Value operand : operands) {
      if (ElementCount(builder_.TypeOf(operand).shape).factor() > kLargestFolded)
        return std::nullopt;
      inside.push_back(alone.Constant(builder_.TypeOf(operand), ConstantOf(operand)->values));
    }
    alone.Output("y", alone.Add(node.operation, inside));
    const auto valid = std::move(alone).Finish();
    if (!valid) return std::nullopt;
    return builder_.Constant(node.type, Evaluate(*valid, {}).value()[0].cells);
  }

  /// Layout operations that do nothing, and pairs of them that can be one or none.
  std::optional<Value> WithoutLayoutChanges(const Node& node, const std::vector<Value>& operands) {
    if (operands.size() != 1) return std::nullopt;
    const Value x = operands[0];
    const Node before = builder_.NodeOf(x);
    const bool same = before.type == node.type;
    if (same && (node.As<Reshape>() || node.As<Slice>() || node.As<Pad>())) return x;
    if (const auto* reshape = node.As<Reshape>(); reshape && before.As<Reshape>()) {
      const Value source{before.operands[0]};
      if (builder_.TypeOf(source) == node.type) return source;
      return Known(builder_.Reshape(source, reshape->shape));
    }
    if (const auto* transpose = node.As<Transpose>()) return Composed(*transpose, x, before);
    const auto* reverse = node.As<Reverse>();
    if (reverse && before.As<Reverse>() && before.As<Reverse>()->axis == reverse->axis)
      return Value{before.operands[0]};
    return std::nullopt;
  }

  /// A transpose of `x`, whose node is `before`: nothing if it keeps the order of the axes, and one
  /// transpose in place of two.
  std::optional<Value> Composed(const Transpose& transpose, Value x, const Node& before) {
    if (std::ranges::is_sorted(transpose.order)) return x;
    const auto* inner = before.As<Transpose>();
    if (inner == nullptr) return std::nullopt;
    std::vector<int64_t> order;
    for (int64_t axis : transpose.order) order.push_back(inner->order[axis]);
    const Value source{before.operands[0]};
    return std::ranges::is_sorted(order) ? source : Known(builder_.Transpose(source, order));
  }

  std::map<std::pair<size_t, std::vector<NodeId>>, std::vector<Value>> seen_;
};

}  // namespace

ValidGraph Simplify(const ValidGraph& graph) { return Copier(Simplifier(graph).Run()).Run(); }

}  // namespace atunner::graph
