// WithConstantIndexTables, see rewrite.h. The gradient of nearest-neighbour interpolation to twice
// the size, for 3 pixels:
//
//     y = scatter_sum(zeros[3], index(-1) / 2, u)     6 updates: elements 0 and 1 go to pixel 0, …
//
// becomes a gather of the updates of each pixel, through a table of their indices, and a sum:
//
//     t: int64[3, 2] = constant(0, 1, 2, 3, 4, 5)
//     y = reduce_sum(gather(u, t), axes=[1])
#include <algorithm>
#include <utility>
#include <vector>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

constexpr int64_t kMostKnown = 4096;  // elements of a table
constexpr size_t kMostUsers = 16;     // updates of one element

/// The elements of a map without operands. Empty for other nodes, for single elements, and for more
/// than kMostKnown.
std::vector<Cell> KnownElements(const Node& node) {
  const auto* map = node.As<Map>();
  const Extent count = ElementCount(node.type.shape);
  if (!map || !node.operands.empty() || !count.constant() || count.one() ||
      count.factor() > kMostKnown)
    return {};
  GraphBuilder builder("known");
  builder.Output("y", builder.Map(map->body, {}, map->shape));
  auto values = Evaluate(std::move(builder).Finish().value(), {});
  return std::move(values.value()[0].cells);
}

class TableWriter : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    if (node.As<Scatter>()) return Scattered(node, std::move(operands));
    std::vector<Cell> known = KnownElements(node);
    return known.empty() ? builder_.Copy(node, std::move(operands))
                         : builder_.Constant(node.type, std::move(known));
  }

  Value Scattered(const Node& node, std::vector<Value> operands) {
    const auto& scatter = *node.As<Scatter>();
    const Node& places = graph_.node(node.operands[1]);
    const Extent& extent = node.type.shape[scatter.axis];
    const std::vector<Cell> known = KnownElements(places);
    if (known.empty() || places.type.rank() != 1 || scatter.batch != 0 ||
        scatter.op != Combine::kSum || !extent.constant())
      return builder_.Copy(node, std::move(operands));
    std::vector<std::vector<int64_t>> users(extent.factor());
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].whole >= 0 && known[i].whole < extent.factor())
        users[known[i].whole].push_back(static_cast<int64_t>(i));
    }
    const size_t most = std::ranges::max(users, {}, &std::vector<int64_t>::size).size();
    if (most > kMostUsers || static_cast<int64_t>(most) * extent.factor() > kMostKnown)
      return builder_.Copy(node, std::move(operands));
    return Gathered(node, users, most, operands);
  }

  /// The sum of the updates of each element. `users` are the numbers of its updates; shorter lists
  /// are filled up with -1. The kernel sums in a loop: two axes of bilinear interpolation took 878
  /// us on an H200 in this way, and 1126 us when the sum was written out.
  Value Gathered(const Node& node, const std::vector<std::vector<int64_t>>& users, size_t most,
                 const std::vector<Value>& operands) {
    const int64_t axis = node.As<Scatter>()->axis;
    const size_t each = std::max<size_t>(most, 1);
    std::vector<Cell> table;
    for (const std::vector<int64_t>& one : users) {
      for (size_t i = 0; i < each; ++i)
        table.push_back(CellOf(DType::kInt64, i < one.size() ? static_cast<double>(one[i]) : -1));
    }
    Shape shape = {node.type.shape[axis]};
    if (each > 1) shape.emplace_back(static_cast<int64_t>(each));
    const Value places = builder_.Constant({DType::kInt64, shape}, std::move(table));
    const Value updates = builder_.Add(Gather{axis, 0}, {operands[2], places});
    shape.resize(shape.size() + node.type.rank() - static_cast<size_t>(axis) - 1, Extent(1));
    Value sum = builder_.Map("select(b >= 0, a, 0)", {updates, builder_.Reshape(places, shape)});
    if (each > 1) sum = builder_.Reduce(Combine::kSum, sum, {axis + 1});
    const auto* start = graph_.node(node.operands[0]).As<Constant>();
    const bool from_zero = start && start->values.size() == 1 && start->values[0].real == 0;
    return from_zero ? sum : builder_.Map("a + b", {operands[0], sum});
  }
};

}  // namespace

ValidGraph WithConstantIndexTables(const ValidGraph& graph) {
  const bool any = std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return node.As<Scatter>() && !KnownElements(graph.node(node.operands[1])).empty();
  });
  return any ? TableWriter(graph).Run() : graph;
}

}  // namespace atunner::graph
