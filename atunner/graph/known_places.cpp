#include <algorithm>
#include <utility>
#include <vector>

#include "atunner/graph/evaluate.h"
#include "atunner/graph/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

constexpr int64_t kMostKnown = 4096;  // elements of a table
constexpr size_t kMostUsers = 8;      // updates that meet at one place

/// Elements of a map that nothing is given to; none where it is no such map, or has too many.
std::vector<Cell> KnownElements(const Node& node) {
  const auto* map = node.As<Map>();
  const Extent count = ElementCount(node.type.shape);
  if (!map || !node.operands.empty() || !count.constant() || count.one() || count.factor() > kMostKnown) return {};
  GraphBuilder builder("known");
  builder.Output("y", builder.Map(map->body, {}, map->shape));
  auto values = Evaluate(std::move(builder).Finish().value(), {});
  return std::move(values.value()[0].cells);
}

class PlaceReader : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    if (node.As<Scatter>()) return Scattered(node, std::move(operands));
    std::vector<Cell> known = KnownElements(node);
    return known.empty() ? Copy(node, std::move(operands)) : builder_.Constant(node.type, std::move(known));
  }

  Value Scattered(const Node& node, std::vector<Value> operands) {
    const auto& scatter = *node.As<Scatter>();
    const Node& places = graph_.node(node.operands[1]);
    const Extent& extent = node.type.shape[scatter.axis];
    const std::vector<Cell> known = KnownElements(places);
    if (known.empty() || places.type.rank() != 1 || scatter.batch != 0 || scatter.op != Combine::kSum ||
        !extent.constant())
      return Copy(node, std::move(operands));
    std::vector<std::vector<int64_t>> users(extent.factor());
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].whole >= 0 && known[i].whole < extent.factor())
        users[known[i].whole].push_back(static_cast<int64_t>(i));
    }
    const size_t most = std::ranges::max(users, {}, &std::vector<int64_t>::size).size();
    if (most > kMostUsers || extent.factor() > kMostKnown) return Copy(node, std::move(operands));
    return Gathered(node, users, most, operands);
  }

  /// The first update of each place, the second, …, added up. What has fewer than the others takes none: places of -1.
  Value Gathered(const Node& node, const std::vector<std::vector<int64_t>>& users, size_t most,
                 const std::vector<Value>& operands) {
    const int64_t axis = node.As<Scatter>()->axis;
    const Extent& extent = node.type.shape[axis];
    Shape broadcast(node.type.rank() - static_cast<size_t>(axis), Extent(1));
    broadcast[0] = extent;
    const auto* start = graph_.node(node.operands[0]).As<Constant>();
    const bool from_zero = start && start->values.size() == 1 && start->values[0].real == 0;
    Value sum = operands[0];
    for (size_t i = 0; i < most; ++i) {
      std::vector<Cell> table;
      for (const std::vector<int64_t>& each : users)
        table.push_back(CellOf(DType::kInt64, i < each.size() ? static_cast<double>(each[i]) : -1));
      const bool all = std::ranges::all_of(users, [&](const auto& each) { return i < each.size(); });
      const Value places = builder_.Constant({DType::kInt64, {extent}}, std::move(table));
      Value update = builder_.Add(Gather{axis, 0}, {operands[2], places});
      if (!all) update = builder_.Map("select(b >= 0, a, 0)", {update, builder_.Reshape(places, broadcast)});
      sum = i == 0 && from_zero ? update : builder_.Map("a + b", {sum, update});
    }
    return sum;
  }
};

}  // namespace

ValidGraph WithoutKnownPlaces(const ValidGraph& graph) {
  const bool any = std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return node.As<Scatter>() && !KnownElements(graph.node(node.operands[1])).empty();
  });
  return any ? PlaceReader(graph).Run() : graph;
}

}  // namespace atunner::graph
