#include <algorithm>
#include <numeric>

#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// Merging is decided by the bounds between axes: bound i of a tensor is between its axes i and i +
/// 1, and merging removes it. A node that copies both axes from an operand to its result joins the
/// two bounds into one class, which is kept or removed as a whole. A node that changes an axis (a
/// reduction, a slice) keeps the bounds at that axis.
///
/// Example: x [2, 3, C] → exp → reduce over the last axis. Bound 1 is kept because of the
/// reduction; bound 0 is removed in all three tensors, so that x becomes [6, C].
class AxesMerger : public Rewriter {
 public:
  explicit AxesMerger(const ValidGraph& graph) : Rewriter(graph) {
    for (const Node& node : graph.nodes()) {
      first_.push_back(classes_.size());
      classes_.resize(classes_.size() + node.type.rank());
    }
    std::iota(classes_.begin(), classes_.end(), size_t{0});
    stays_.resize(classes_.size(), false);
    for (size_t id = 0; id < first_.size(); ++id) {
      if (needed_[id]) Look(static_cast<NodeId>(id));
    }
    // Inputs and outputs of one shape keep one shape, because kernels iterate over them together.
    std::vector<NodeId> outside = graph.inputs();
    for (const graph::Output& output : graph.outputs()) outside.push_back(output.node);
    for (NodeId a : outside) {
      for (NodeId b : outside) {
        if (ShapeOf(a) == ShapeOf(b)) JoinAll(a, b);
      }
    }
  }

 private:
  const Shape& ShapeOf(NodeId id) const { return graph_.node(id).type.shape; }
  static size_t Bounds(const Shape& shape) { return shape.empty() ? 0 : shape.size() - 1; }

  size_t ClassOf(size_t bound) {
    while (classes_[bound] != bound) bound = classes_[bound] = classes_[classes_[bound]];
    return bound;
  }
  void Keep(NodeId id, size_t bound) { stays_[ClassOf(first_[id] + bound)] = true; }
  void Join(NodeId a, size_t bound_a, NodeId b, size_t bound_b) {
    const size_t from = ClassOf(first_[a] + bound_a);
    const size_t to = ClassOf(first_[b] + bound_b);
    stays_[to] = stays_[to] || stays_[from];
    classes_[from] = to;
  }
  void JoinAll(NodeId a, NodeId b) {
    for (size_t bound = 0; bound < Bounds(ShapeOf(a)); ++bound) Join(a, bound, b, bound);
  }

  void Look(NodeId id) {
    const Node& node = graph_.node(id);
    // The bounds of the result that an operand has too.
    std::vector<bool> found(node.type.rank(), false);
    const auto* scatter = node.As<Scatter>();
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (i == 1 && scatter && scatter->batch == 0)
        LookAtIndices(*scatter, node.operands[1], node.operands[2]);
      else if (const auto* map = node.As<Map>())
        LookAtMap(id, *map, node.operands[i]);
      else if (node.As<Reshape>())
        LookAtReshape(id, node.operands[i]);
      else
        LookAtLayout(id, i, found);
    }
    const auto* map = node.As<Map>();
    const bool places = map &&
                        (map->body.Uses(ScalarOp::kIndex) || map->body.Uses(ScalarOp::kExtent));
    const bool moves = !map && !node.As<Reshape>() && !node.operands.empty();
    for (size_t bound = 0; bound < Bounds(node.type.shape); ++bound) {
      if (places || (moves && !found[bound])) Keep(id, bound);
    }
  }

  /// An operand either has an axis of the result or is broadcast along it, and axes that differ in
  /// that must not be merged. Axes of extent 1 can be merged with either.
  void LookAtMap(NodeId id, const Map& map, NodeId operand) {
    const Shape& from = ShapeOf(operand);
    const size_t lead = map.shape.size() - from.size();
    std::optional<bool> repeats;
    for (size_t axis = 0; axis < map.shape.size(); ++axis) {
      if (axis > lead) Join(operand, axis - lead - 1, id, axis - 1);
      if (map.shape[axis].one()) continue;
      const bool here = axis < lead || from[axis - lead].one();
      if (repeats && *repeats != here) Keep(id, axis - 1);
      repeats = here;
    }
  }
  /// Joins bounds that have equally many elements behind them.
  void LookAtReshape(NodeId id, NodeId operand) {
    const auto behind = [](const Shape& shape, size_t bound) {
      return ElementCount({shape.begin() + static_cast<int64_t>(bound) + 1, shape.end()});
    };
    for (size_t i = 0; i < Bounds(ShapeOf(operand)); ++i) {
      for (size_t j = 0; j < Bounds(ShapeOf(id)); ++j) {
        if (behind(ShapeOf(operand), i) == behind(ShapeOf(id), j)) Join(operand, i, id, j);
      }
    }
  }
  void LookAtLayout(NodeId id, size_t number, std::vector<bool>& found) {
    const Node& node = graph_.node(id);
    const NodeId operand = node.operands[number];
    const auto* reduce = node.As<Reduce>();
    const auto* scatter = node.As<Scatter>();
    const bool any_order = (reduce && reduce->op != Combine::kArgMax &&
                            reduce->op != Combine::kArgMin) ||
                           (scatter && scatter->batch == 0);  // the order of indices is free
    const std::vector<int64_t> axes = AxesInResult(node, number);
    for (size_t i = 0; i < Bounds(ShapeOf(operand)); ++i) {
      const bool alike = !reduce || Reduces(*reduce, i) == Reduces(*reduce, i + 1);
      if (alike && axes[i] >= 0 && axes[i + 1] == axes[i] + 1) {
        Join(operand, i, id, static_cast<size_t>(axes[i]));
        found[axes[i]] = true;
      } else if (!alike || !any_order || axes[i] >= 0 || axes[i + 1] >= 0) {
        Keep(operand, i);
      }
    }
  }
  /// The axes of a scatter's indices are axes of its updates.
  void LookAtIndices(const Scatter& scatter, NodeId places, NodeId updates) {
    for (size_t bound = 0; bound < Bounds(ShapeOf(places)); ++bound)
      Join(places, bound, updates, static_cast<size_t>(scatter.axis) + bound);
  }
  static bool Reduces(const Reduce& reduce, size_t axis) {
    return std::ranges::find(reduce.axes, static_cast<int64_t>(axis)) != reduce.axes.end();
  }
  /// For each axis of an operand its number in the result; -1 if the axis is changed or gone, or if
  /// the operation is not followed.
  std::vector<int64_t> AxesInResult(const Node& node, size_t number) const {
    const size_t rank = ShapeOf(node.operands[number]).size();
    std::vector<int64_t> axes(rank, -1);
    const auto fill = [&](int64_t changed, int64_t shift, int64_t so_many = 1) {
      for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis)
        axes[axis] = axis < changed ? axis : axis >= changed + so_many ? axis + shift : -1;
    };
    int64_t next = 0;
    if (const auto* transpose = node.As<Transpose>()) {
      for (int64_t axis : transpose->order) axes[axis] = next++;
    } else if (const auto* reduce = node.As<Reduce>()) {
      for (size_t axis = 0; axis < rank; ++axis) {
        if (reduce->keep || !Reduces(*reduce, axis)) axes[axis] = next++;
      }
    } else if (const auto* window = node.As<Window>()) {
      fill(window->axis, 1);
    } else if (const auto axis = ChangedAxis(node)) {
      fill(*axis, 0);
    } else if (node.As<Gather>() || node.As<Scatter>()) {
      FollowIndexed(node, number, axes, fill);
    }
    return axes;
  }
  /// The one axis that the node changes, if it keeps the number and the order of the axes.
  static std::optional<int64_t> ChangedAxis(const Node& node) {
    if (const auto* pad = node.As<Pad>()) return pad->axis;
    if (const auto* slice = node.As<Slice>()) return slice->axis;
    if (const auto* reverse = node.As<Reverse>()) return reverse->axis;
    if (const auto* concat = node.As<Concat>()) return concat->axis;
    if (const auto* scan = node.As<Scan>()) return scan->axis;
    return std::nullopt;
  }
  /// AxesInResult for gathers and scatters without batch axes; those with some are not followed.
  template <class Fill>
  void FollowIndexed(const Node& node, size_t number, std::vector<int64_t>& axes,
                     const Fill& fill) const {
    const auto* gather = node.As<Gather>();
    const auto* scatter = node.As<Scatter>();
    const auto indices = static_cast<int64_t>(ShapeOf(node.operands[1]).size());
    if (gather && gather->batch == 0 && number == 0)
      fill(gather->axis, indices - 1);
    else if (gather && gather->batch == 0)
      std::iota(axes.begin(), axes.end(), gather->axis);
    else if (scatter && scatter->batch == 0 && number == 0)
      fill(scatter->axis, 0);
    else if (scatter && scatter->batch == 0 && number == 2)
      fill(scatter->axis, 1 - indices, indices);
  }

  /// For each axis the number of the merged axis that it belongs to.
  std::vector<int64_t> Numbers(NodeId id) {
    std::vector<int64_t> numbers;
    for (size_t axis = 0; axis < ShapeOf(id).size(); ++axis)
      numbers.push_back(
          axis == 0 ? 0 : numbers.back() + (stays_[ClassOf(first_[id] + axis - 1)] ? 1 : 0));
    return numbers;
  }
  Shape Merged(NodeId id) {
    const std::vector<int64_t> numbers = Numbers(id);
    Shape merged(numbers.empty() ? 0 : static_cast<size_t>(numbers.back()) + 1, Extent(1));
    for (size_t axis = 0; axis < numbers.size(); ++axis)
      merged[numbers[axis]] = merged[numbers[axis]] * ShapeOf(id)[axis];
    return merged;
  }

  Shape InputShape(NodeId id) override { return Merged(id); }
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    if (const auto* constant = node.As<Constant>())
      return builder_.Constant({node.type.dtype, Merged(id)}, constant->values);
    if (const auto* map = node.As<Map>())
      return builder_.Map(map->body, std::move(operands), Merged(id));
    if (node.As<Reshape>()) return builder_.Reshape(operands[0], Merged(id));
    const std::vector<int64_t> numbers = Numbers(node.operands[0]);
    Operation operation = node.operation;
    const auto renumber = [&](std::vector<int64_t>& axes) {
      for (int64_t& axis : axes) axis = numbers[axis];
      axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    };
    if (auto* reduce = std::get_if<Reduce>(&operation))
      std::ranges::sort(reduce->axes), renumber(reduce->axes);
    if (auto* transpose = std::get_if<Transpose>(&operation)) renumber(transpose->order);
    std::visit(
        [&](auto& each) {
          if constexpr (requires { each.axis; }) each.axis = numbers[each.axis];
        },
        operation);
    return builder_.Add(std::move(operation), std::move(operands));
  }

  std::vector<size_t> first_;    ///< by node: the number of its first bound
  std::vector<size_t> classes_;  ///< by bound: another bound of its class (union-find)
  std::vector<bool> stays_;      ///< by class: true if its bounds are kept
};

}  // namespace

ValidGraph MergeAxes(const ValidGraph& graph) { return AxesMerger(graph).Run(); }

}  // namespace atunner::graph
