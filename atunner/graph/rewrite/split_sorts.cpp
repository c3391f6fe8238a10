// WithSplitSorts, see rewrite.h. The 8 largest of each of 4 rows of 65536 elements:
//
//     s = sort(x, axis=1, descending=true, count=8)         x [4, 65536], s [4, 8]
//
// becomes, with 16 parts of each row,
//
//     p = sort(reshape(x, [4, 16, 4096]), axis=2, count=8)  indices in each part, [4, 16, 8]
//     v = reshape(gather(x, p), [4, 128])                   their values
//     s = the indices p + part * 4096 of the 8 largest of v
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// Rows are split from this length on if there are at most kFewRows: one block for each row would
/// leave most of a GPU idle.
constexpr int64_t kLong = 16384, kFewRows = 512, kLeastPart = 4096, kMostParts = 16;

/// The number of parts of each row, a power of two; 1 if the node is not to be split. Parts are so
/// long that at most 1 in 64 of their elements is wanted.
int64_t PartsOf(const ValidGraph& graph, const Node& node) {
  const auto* sort = node.As<Sort>();
  if (!sort || sort->axis + 1 != static_cast<int64_t>(node.type.rank()) || sort->count == 0)
    return 1;
  const Shape& shape = graph.node(node.operands[0]).type.shape;
  const Extent rows = ElementCount({shape.begin(), shape.end() - 1});
  const int64_t columns = shape.back().factor();
  if (!rows.constant() || !shape.back().constant() || rows.factor() > kFewRows || columns < kLong)
    return 1;
  int64_t parts = 1;
  while (parts < kMostParts && columns % (2 * parts) == 0 && columns / (2 * parts) >= kLeastPart &&
         columns / (2 * parts) >= 64 * sort->count && parts * rows.factor() < 2 * kFewRows)
    parts *= 2;
  return parts;
}

/// The first elements of a row are among the first elements of its parts. The result stays stable:
/// equal elements of an earlier part come first in both sorts.
class SortSplitter : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto last = static_cast<int64_t>(node.type.rank()) - 1;
    if (const auto* sort = node.As<Sort>(); sort && sort->axis != last)
      return AlongLastAxis(*sort, operands[0]);
    const int64_t parts = PartsOf(graph_, node);
    if (parts == 1) return builder_.Copy(node, std::move(operands));
    return InParts(*node.As<Sort>(), operands[0], parts);
  }

  Value AlongLastAxis(const Sort& sort, Value value) {
    const auto rank = static_cast<int64_t>(builder_.TypeOf(value).rank());
    std::vector<int64_t> turned(rank);
    std::iota(turned.begin(), turned.end(), int64_t{0});
    std::swap(turned[sort.axis], turned[rank - 1]);
    const Value x = builder_.Transpose(value, turned);
    return builder_.Transpose(builder_.Add(Sort{rank - 1, sort.descending, sort.count}, {x}),
                              turned);
  }

  Value InParts(const Sort& sort, Value value, int64_t parts) {
    const int64_t axis = sort.axis;
    Shape divided = builder_.TypeOf(value).shape, together = divided;
    const int64_t columns = divided.back().factor() / parts;
    divided.back() = Extent(parts);
    divided.emplace_back(columns);
    together.back() = Extent(parts * sort.count);
    const Value x = builder_.Reshape(value, divided);
    const Value first = builder_.Add(Sort{axis + 1, sort.descending, sort.count}, {x});
    const Value values = builder_.Reshape(builder_.Add(Gather{axis + 1, axis + 1}, {x, first}),
                                          together);
    const Value indices = builder_.Reshape(
        builder_.Map("a + index(-2) * " + std::to_string(columns), {first}), together);
    return builder_.Add(Gather{axis, axis}, {indices, builder_.Add(sort, {values})});
  }
};

}  // namespace

bool HasLongSorts(const ValidGraph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [&](const Node& node) { return PartsOf(graph, node) > 1; });
}
ValidGraph WithSplitSorts(const ValidGraph& graph) { return SortSplitter(graph).Run(); }

}  // namespace atunner::graph
