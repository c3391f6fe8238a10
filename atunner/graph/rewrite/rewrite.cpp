#include "atunner/graph/rewrite/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

constexpr int64_t kLargestFolded = 4096;  // elements
constexpr size_t kLongestSpelled = 16;    // constants of a table that expressions say themselves

/// The table's element at the place where an expression is evaluated, whose last axes are the
/// table's.
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

/// Leaves out what is not needed.
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
    if (const auto simple = WithoutMoves(node, operands)) return *simple;
    return Known(builder_.Copy(node, std::move(operands)));
  }

  /// The equal node that was there before, if there is one.
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

  /// The value of a node over constants.
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

  /// Reshapes, transposes and the like that cancel or do nothing.
  std::optional<Value> WithoutMoves(const Node& node, const std::vector<Value>& operands) {
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
    if (const auto* transpose = node.As<Transpose>()) {
      if (std::ranges::is_sorted(transpose->order)) return x;
      if (const auto* inner = before.As<Transpose>()) {
        std::vector<int64_t> order;
        for (int64_t axis : transpose->order) order.push_back(inner->order[axis]);
        const Value source{before.operands[0]};
        return std::ranges::is_sorted(order) ? source : Known(builder_.Transpose(source, order));
      }
    }
    const auto* reverse = node.As<Reverse>();
    if (reverse && before.As<Reverse>() && before.As<Reverse>()->axis == reverse->axis)
      return Value{before.operands[0]};
    return std::nullopt;
  }

  std::map<std::pair<size_t, std::vector<NodeId>>, std::vector<Value>> seen_;
};

/// Only conversions and places: cheaper to compute again than to remember.
bool IsFree(const ScalarExpression& body) {
  return std::ranges::all_of(body.nodes(), [](const ScalarNode& node) {
    return ArityOf(node.op) == 0 || node.op == ScalarOp::kCast;
  });
}

class Fuser : public Rewriter {
 public:
  Fuser(const ValidGraph& graph, bool through_roundings)
      : Rewriter(graph), uses_(graph.UseCounts()), through_roundings_(through_roundings) {}

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    if (!map) return builder_.Copy(node, std::move(operands));
    std::vector<Value> all;
    std::vector<DType> types;
    std::vector<std::vector<int>> numbers(operands.size());  // of the operands that stand for each
    const auto take = [&](Value value) {
      all.push_back(value);
      types.push_back(builder_.TypeOf(value).dtype);
      return static_cast<int>(all.size()) - 1;
    };
    std::vector<bool> inlined;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Node& producer = builder_.NodeOf(operands[i]);
      inlined.push_back(Inlines(node.operands[i], producer, node));
      if (!inlined[i])
        numbers[i] = {take(operands[i])};
      else
        for (NodeId each : producer.operands) numbers[i].push_back(take({each}));
    }
    ScalarBuilder scalar(types);
    std::vector<int> arguments;
    for (size_t i = 0; i < operands.size(); ++i) {
      std::vector<int> inner;
      for (int number : numbers[i]) inner.push_back(scalar.Parameter(number));
      arguments.push_back(inlined[i] ? Inlined(scalar, builder_.NodeOf(operands[i]), inner)
                                     : inner[0]);
    }
    const auto body = scalar.Finish(scalar.Import(map->body, arguments).value()).value();
    return builder_.Map(body, std::move(all), map->shape);
  }

  bool Inlines(NodeId old_producer, const Node& producer, const Node& user) const {
    const auto* map = producer.As<Map>();
    const TensorType& consumer = user.type;
    if (!map || (!through_roundings_ && Narrows(producer))) return false;
    if (map->body.Depth() + user.As<Map>()->body.Depth() > kDeepestExpression) return false;
    const bool free = IsFree(map->body);
    const bool only = uses_[old_producer] == 1 && producer.type.shape == consumer.shape;
    // Extents that a place refers to must be known here.
    const bool known = std::ranges::all_of(producer.type.shape,
                                           [](const Extent& e) { return e.constant(); });
    return (free || only) &&
           (known || producer.type.shape == consumer.shape || !map->body.Uses(ScalarOp::kExtent));
  }

  /// Is an operand of this shape wider?
  bool Narrows(const Node& map) const {
    return std::ranges::any_of(map.operands, [&](NodeId operand) {
      const TensorType& type = builder_.TypeOf({operand});
      return type.shape == map.type.shape && SizeOf(map.type.dtype) < SizeOf(type.dtype);
    });
  }

  /// The producer's expression; where it has an extent of 1 that is stretched here, its places do
  /// not move.
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

class PlaceFinder : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* reduce = node.As<Reduce>();
    const bool largest = reduce && reduce->op == Combine::kArgMax;
    // Of what is computed the two reductions might see elements that are rounded differently.
    if (!reduce || !(largest || reduce->op == Combine::kArgMin) || !IsExact(node.operands[0]))
      return builder_.Copy(node, std::move(operands));
    const TensorType& type = graph_.node(node.operands[0]).type;
    const int64_t axis = reduce->axes[0] - static_cast<int64_t>(type.rank());
    const Value extreme = builder_.Reduce(largest ? Combine::kMax : Combine::kMin, operands[0],
                                          reduce->axes, true);
    const std::string is_it = IsFloat(type.dtype) ? "a == b | isnan(a)" : "a == b";
    const Value place = builder_.Map(
        fmt::format("select({}, index({}), extent({}))", is_it, axis, axis),
        {operands[0], extreme});
    if (!node.name.empty() && NameIsFree(node.name + "_extreme") &&
        NameIsFree(node.name + "_place")) {
      builder_.Name(extreme, node.name + "_extreme");
      builder_.Name(place, node.name + "_place");
    }
    return builder_.Reduce(Combine::kMin, place, reduce->axes, reduce->keep);
  }

  /// An input, or one that is converted.
  bool IsExact(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    return node.As<Input>() || (map && IsFree(map->body) && node.operands.size() == 1 &&
                                graph_.node(node.operands[0]).As<Input>());
  }
};

class UpdateFinder : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* scatter = node.As<Scatter>();
    const auto last = static_cast<int64_t>(node.type.rank()) - 1;
    Shape kept = node.type.shape;
    if (!kept.empty()) kept.back() = Extent(1);
    if (!scatter || scatter->axis != last || scatter->batch != last ||
        ElementCount(graph_.node(node.operands[1]).type.shape) != ElementCount(kept))
      return builder_.Copy(node, std::move(operands));
    for (size_t i = 1; i < 3; ++i) operands[i] = builder_.Reshape(operands[i], kept);
    operands[1] = builder_.Cast(operands[1], DType::kInt64);
    const char* updated = scatter->op == Combine::kSum   ? "a + c"
                          : scatter->op == Combine::kMax ? "maximum(a, c)"
                          : scatter->op == Combine::kMin ? "minimum(a, c)"
                                                         : "c";
    return builder_.Map(fmt::format("select(index(-1) == b, {}, a)", updated), std::move(operands));
  }
};

/// Which nodes hold one value for each row of the space, without the reduced axes; none where one
/// of them is used otherwise too.
std::vector<bool> FindRows(const ValidGraph& graph, const Shape& space, size_t row_axes) {
  const std::vector<Node>& nodes = graph.nodes();
  const Shape rows(space.begin(), space.begin() + static_cast<int64_t>(row_axes));
  Shape kept = rows;
  kept.resize(space.size(), Extent(1));
  std::vector<bool> found(nodes.size(), false);
  const auto shape_of = [&](NodeId id) -> const Shape& { return nodes[id].type.shape; };
  const auto is_gather = [&](const Node& node) {
    const auto* gather = node.As<Gather>();
    const auto axes = static_cast<int64_t>(row_axes);
    return gather && gather->axis == axes && gather->batch == axes &&
           shape_of(node.operands[0]) == space && row_axes + 1 == space.size();
  };
  bool more = true;
  const auto mark = [&](NodeId id) {
    if (shape_of(id) != rows || found[id]) return;
    more = found[id] = true;
  };
  while (more) {
    more = false;
    for (size_t id = 0; id < nodes.size(); ++id) {
      const Node& node = nodes[id];
      const auto here = static_cast<NodeId>(id);
      const auto* reduce = node.As<Reduce>();
      if (reduce && shape_of(node.operands[0]) == space &&
          reduce->axes.size() + row_axes == space.size() &&
          reduce->axes.front() == static_cast<int64_t>(row_axes))
        mark(here);
      if (is_gather(node)) mark(here), mark(node.operands[1]);
      if (node.As<Reshape>() && node.type.shape == kept) mark(node.operands[0]);
      if (node.As<Reshape>() && shape_of(node.operands[0]) == kept) mark(here);
      if (!node.As<Map>() || node.type.shape != rows) continue;
      if (std::ranges::any_of(node.operands, [&](NodeId operand) { return bool{found[operand]}; }))
        mark(here);
      for (NodeId operand : node.operands) {
        if (found[id]) mark(operand);
      }
    }
  }
  for (size_t id = 0; id < nodes.size(); ++id) {
    const Node& node = nodes[id];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const bool serves = (node.As<Map>() && found[id]) ||
                          (node.As<Reshape>() && node.type.shape == kept) ||
                          (is_gather(node) && i == 1);
      const bool fits = !node.As<Map>() || !found[id] || found[node.operands[i]] ||
                        ElementCount(shape_of(node.operands[i])).one();
      if ((found[node.operands[i]] && !serves) || !fits)
        return std::vector<bool>(nodes.size(), false);
    }
  }
  return found;
}

class RowKeeper : public Rewriter {
 public:
  RowKeeper(const ValidGraph& graph, std::vector<bool> rows, Shape kept)
      : Rewriter(graph), rows_(std::move(rows)), kept_(std::move(kept)) {}

 private:
  Shape InputShape(NodeId id) override { return rows_[id] ? kept_ : graph_.node(id).type.shape; }
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const bool between = node.As<Reshape>() && (rows_[id] || rows_[node.operands[0]]);
    if (between && builder_.TypeOf(operands[0]).shape == kept_) return operands[0];
    if (!rows_[id]) return builder_.Copy(node, std::move(operands));
    if (const auto* map = node.As<Map>()) return Moved(*map, std::move(operands));
    const auto* reduce = node.As<Reduce>();
    const Value made = reduce
                           ? builder_.Reduce(reduce->op, operands[0], reduce->axes, /*keep=*/true)
                           : builder_.Copy(node, std::move(operands));
    // Values for rows may come from elsewhere: the same elements in the same order.
    return builder_.TypeOf(made).shape == kept_ ? made : builder_.Reshape(made, kept_);
  }
  /// Its axes now have others behind them.
  Value Moved(const Map& map, std::vector<Value> operands) {
    ScalarBuilder scalar(map.body.parameters());
    std::vector<int> arguments;
    for (size_t i = 0; i < operands.size(); ++i)
      arguments.push_back(scalar.Parameter(static_cast<int>(i)));
    const int behind = static_cast<int>(kept_.size() - map.shape.size());
    const auto place = [&](const ScalarNode& node) {
      return node.op == ScalarOp::kIndex ? scalar.Index(node.number - behind)
                                         : scalar.Extent(node.number - behind);
    };
    auto body = scalar.Finish(scalar.Import(map.body, arguments, place).value()).value();
    return builder_.Map(std::move(body), std::move(operands), kept_);
  }

  std::vector<bool> rows_;
  Shape kept_;
};

}  // namespace

bool IsUnaryMap(const Node& node) {
  const auto* map = node.As<Map>();
  return map && node.operands.size() == 1 && !map->body.Uses(ScalarOp::kIndex) &&
         !map->body.Uses(ScalarOp::kExtent);
}

ValidGraph WithKeptRows(const ValidGraph& graph) {
  const auto first = std::ranges::find_if(
      graph.nodes(), [](const Node& node) { return node.As<Reduce>() != nullptr; });
  if (first == graph.nodes().end()) return graph;
  Shape space = graph.node(first->operands[0]).type.shape;
  const size_t rows = space.size() - first->As<Reduce>()->axes.size();
  if (rows == 0 || first->As<Reduce>()->axes.front() != static_cast<int64_t>(rows)) return graph;
  std::vector<bool> found = FindRows(graph, space, rows);
  std::fill(space.begin() + static_cast<int64_t>(rows), space.end(), Extent(1));
  return RowKeeper(graph, std::move(found), std::move(space)).Run();
}
ValidGraph WithoutSingleUpdates(const ValidGraph& graph) { return UpdateFinder(graph).Run(); }

ValidGraph WithoutPlaces(const ValidGraph& graph) { return PlaceFinder(graph).Run(); }
ValidGraph Simplify(const ValidGraph& graph) { return Copier(Simplifier(graph).Run()).Run(); }
ValidGraph FuseMaps(const ValidGraph& graph, bool through_roundings) {
  return Simplify(Fuser(Simplify(graph), through_roundings).Run());
}

}  // namespace atunner::graph
