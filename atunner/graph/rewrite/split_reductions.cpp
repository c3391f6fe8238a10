// WithSplitReductions, see split_reductions.h. The sum of all elements of x [4096, 65536]:
//
//     y = reduce_sum(x, axes=[0, 1])
//
// becomes
//
//     p = reduce_sum(x, axes=[1])      4096 results, each of which a block computes
//     y = reduce_sum(p, axes=[0])
#include "atunner/graph/rewrite/split_reductions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// A block that computes one result takes milliseconds for so many terms, and so few results leave
/// most of a GPU idle.
constexpr int64_t kLong = int64_t{1} << 20;
constexpr int64_t kFewResults = 512;

bool IsSplittable(Combine op) {
  return op == Combine::kSum || op == Combine::kMean || op == Combine::kProd ||
         op == Combine::kMax || op == Combine::kMin || op == Combine::kAny || op == Combine::kAll;
}

/// The largest divisor of `n` that is at most `most`.
int64_t DivisorUpTo(int64_t n, int64_t most) {
  for (int64_t divisor = std::min(n, most); divisor > 1; --divisor)
    if (n % divisor == 0) return divisor;
  return 1;
}

class ReductionSplitter : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* reduce = node.As<Reduce>();
    if (reduce == nullptr || !IsLong(id, *reduce)) return builder_.Copy(node, std::move(operands));
    const Combine op = reduce->op == Combine::kMean ? Combine::kSum : reduce->op;
    std::vector<int64_t> axes = reduce->axes;
    std::ranges::sort(axes);
    const Shape from = builder_.TypeOf(operands[0]).shape;
    const Value split = WithManyResults(operands[0], axes, op);
    Value all = builder_.Reduce(op, split, axes, false);
    if (reduce->op == Combine::kMean) {
      int64_t terms = 1;
      for (const int64_t axis : reduce->axes) terms *= from[axis].factor();
      all = builder_.Map("a / " + std::to_string(terms), {all});
    }
    return builder_.Reshape(all, node.type.shape);
  }

  bool IsLong(NodeId id, const Reduce& reduce) const {
    const Node& node = graph_.node(id);
    const Extent results = ElementCount(node.type.shape);
    const Extent elements = ElementCount(graph_.node(node.operands[0]).type.shape);
    return IsSplittable(reduce.op) && results.constant() && elements.constant() &&
           results.factor() < kFewResults && elements.factor() / results.factor() >= kLong;
  }

  /// Reduces inner axes of `axes`, or a part of the last one, as long as many results remain.
  /// Returns the partial results; `axes` are those of them that remain to be reduced.
  Value WithManyResults(Value x, std::vector<int64_t>& axes, Combine op) {
    const Shape shape = builder_.TypeOf(x).shape;
    int64_t remaining = ElementCount(shape).factor();
    std::vector<int64_t> inner;
    while (!axes.empty() && remaining / shape[axes.back()].factor() >= kFewResults) {
      remaining /= shape[axes.back()].factor();
      inner.insert(inner.begin(), axes.back());
      axes.pop_back();
    }
    if (inner.empty()) return InParts(x, axes, op, remaining);
    const Value partial = builder_.Reduce(op, x, inner, false);
    for (int64_t& axis : axes)
      axis -= std::ranges::count_if(inner, [&](int64_t gone) { return gone < axis; });
    return partial;
  }

  /// The last of `axes` as two axes, the inner one of which is reduced.
  Value InParts(Value x, const std::vector<int64_t>& axes, Combine op, int64_t elements) {
    Shape shape = builder_.TypeOf(x).shape;
    const int64_t last = axes.back();
    const int64_t extent = shape[last].factor();
    const int64_t others = elements / extent;
    const int64_t parts = DivisorUpTo(extent, 64 * (kFewResults / others + 1));
    if (parts == 1) return x;
    shape[last] = Extent(parts);
    shape.insert(shape.begin() + last + 1, Extent(extent / parts));
    return builder_.Reduce(op, builder_.Reshape(x, shape), {last + 1}, false);
  }
};

}  // namespace

ValidGraph WithSplitReductions(const ValidGraph& graph) { return ReductionSplitter(graph).Run(); }

}  // namespace atunner::graph
