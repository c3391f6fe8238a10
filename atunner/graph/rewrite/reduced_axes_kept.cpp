// WithReducedAxesKept: values of rows keep the reduced axes as extents of 1.
//
//     m: [R] = reduce_max(x, axes=[1])             m: [R, 1] = reduce_max(x, axes=[1], keep=true)
//     n: [R, 1] = reshape(m, shape=[R, 1])   →     y: [R, C] = x - m
//     y: [R, C] = x - n
#include <algorithm>

#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// Finds the nodes that hold one value for each row of the space, without the reduced axes.
class RowValues {
 public:
  RowValues(const ValidGraph& graph, const Shape& space, size_t row_axes)
      : nodes_(graph.nodes()),
        space_(space),
        row_axes_(row_axes),
        rows_(space.begin(), space.begin() + static_cast<int64_t>(row_axes)),
        kept_(rows_),
        found_(nodes_.size(), false) {
    kept_.resize(space.size(), Extent(1));
  }

  /// By node; all false if one of them is used in a way that needs the shape without these axes.
  std::vector<bool> Find() {
    while (more_) {
      more_ = false;
      for (size_t id = 0; id < nodes_.size(); ++id) MarkFrom(static_cast<NodeId>(id));
    }
    const bool fits = std::ranges::all_of(nodes_, [&](const Node& node) { return Fits(node); });
    return fits ? found_ : std::vector<bool>(nodes_.size(), false);
  }

 private:
  const Shape& ShapeOf(NodeId id) const { return nodes_[id].type.shape; }
  bool Reduces(const Node& node) const {
    const auto* reduce = node.As<Reduce>();
    return reduce && ShapeOf(node.operands[0]) == space_ &&
           reduce->axes.size() + row_axes_ == space_.size() &&
           reduce->axes.front() == static_cast<int64_t>(row_axes_);
  }
  /// True for a gather that picks one element of each row.
  bool Picks(const Node& node) const {
    const auto* gather = node.As<Gather>();
    const auto axes = static_cast<int64_t>(row_axes_);
    return gather && gather->axis == axes && gather->batch == axes &&
           ShapeOf(node.operands[0]) == space_ && row_axes_ + 1 == space_.size();
  }
  bool IsFound(NodeId id) const { return found_[id]; }
  void Mark(NodeId id) {
    if (ShapeOf(id) == rows_ && !found_[id]) more_ = found_[id] = true;
  }

  void MarkFrom(NodeId id) {
    const Node& node = nodes_[id];
    if (Reduces(node)) Mark(id);
    if (Picks(node)) Mark(id), Mark(node.operands[1]);
    if (node.As<Reshape>() && node.type.shape == kept_) Mark(node.operands[0]);
    if (node.As<Reshape>() && ShapeOf(node.operands[0]) == kept_) Mark(id);
    if (!node.As<Map>() || node.type.shape != rows_) return;
    if (std::ranges::any_of(node.operands, [&](NodeId operand) { return IsFound(operand); }))
      Mark(id);
    for (NodeId operand : node.operands) {
      if (found_[id]) Mark(operand);
    }
  }

  /// True if the node can take its operands when row values have the kept axes.
  bool Fits(const Node& node) const {
    const bool in_rows = node.As<Map>() && found_[static_cast<size_t>(&node - nodes_.data())];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const NodeId operand = node.operands[i];
      const bool serves = in_rows || (node.As<Reshape>() && node.type.shape == kept_) ||
                          (Picks(node) && i == 1);
      const bool fits = !in_rows || found_[operand] || ElementCount(ShapeOf(operand)).one();
      if ((found_[operand] && !serves) || !fits) return false;
    }
    return true;
  }

  const std::vector<Node>& nodes_;
  const Shape& space_;
  size_t row_axes_;
  Shape rows_, kept_;  ///< the shape of row values: without the reduced axes, and with them as 1
  std::vector<bool> found_;
  bool more_ = true;
};

class AxisKeeper : public Rewriter {
 public:
  AxisKeeper(const ValidGraph& graph, std::vector<bool> rows, Shape kept)
      : Rewriter(graph), rows_(std::move(rows)), kept_(std::move(kept)) {}

 private:
  Shape InputShape(NodeId id) override { return rows_[id] ? kept_ : graph_.node(id).type.shape; }
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const bool between = node.As<Reshape>() && (rows_[id] || rows_[node.operands[0]]);
    if (between && builder_.TypeOf(operands[0]).shape == kept_) return operands[0];
    if (!rows_[id]) return builder_.Copy(node, std::move(operands));
    if (const auto* map = node.As<Map>()) return Shifted(*map, std::move(operands));
    const auto* reduce = node.As<Reduce>();
    const Value made = reduce
                           ? builder_.Reduce(reduce->op, operands[0], reduce->axes, /*keep=*/true)
                           : builder_.Copy(node, std::move(operands));
    // Other nodes, such as gathers, have no `keep`; a reshape adds the axes.
    return builder_.TypeOf(made).shape == kept_ ? made : builder_.Reshape(made, kept_);
  }
  /// The map over shapes with the kept axes behind: index(-1) becomes index(-2) for one kept axis.
  Value Shifted(const Map& map, std::vector<Value> operands) {
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

ValidGraph WithReducedAxesKept(const ValidGraph& graph) {
  const auto first = std::ranges::find_if(
      graph.nodes(), [](const Node& node) { return node.As<Reduce>() != nullptr; });
  if (first == graph.nodes().end()) return graph;
  Shape space = graph.node(first->operands[0]).type.shape;
  const size_t rows = space.size() - first->As<Reduce>()->axes.size();
  if (rows == 0 || first->As<Reduce>()->axes.front() != static_cast<int64_t>(rows)) return graph;
  std::vector<bool> found = RowValues(graph, space, rows).Find();
  std::fill(space.begin() + static_cast<int64_t>(rows), space.end(), Extent(1));
  return AxisKeeper(graph, std::move(found), std::move(space)).Run();
}

}  // namespace atunner::graph
