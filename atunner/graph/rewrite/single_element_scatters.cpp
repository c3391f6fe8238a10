// WithoutSingleElementScatters: a scatter with one update for each row becomes a map.
//
//     y = scatter_sum(x, i, u, axis=1, batch=1)        x [R, C], i and u [R, 1]
//
// becomes y = select(index(-1) == i, x + u, x).
#include <fmt/format.h>

#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

class SingleElementScatterRewriter : public Rewriter {
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

}  // namespace

ValidGraph WithoutSingleElementScatters(const ValidGraph& graph) {
  return SingleElementScatterRewriter(graph).Run();
}

}  // namespace atunner::graph
