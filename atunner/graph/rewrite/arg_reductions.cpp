// WithoutArgReductions: argmax and argmin become two reductions of the usual kind.
//
//     y = reduce_argmax(x, axes=[1])   becomes   m = reduce_max(x, axes=[1], keep=true)
//                                                i = select(x == m | isnan(x), index(-1),
//                                                extent(-1)) y = reduce_min(i, axes=[1])
#include <fmt/format.h>

#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

class ArgReductionRewriter : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* reduce = node.As<Reduce>();
    const bool largest = reduce && reduce->op == Combine::kArgMax;
    // Both reductions must see the same bits. A computed operand might be rounded differently in
    // each.
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

  /// True for an input, or a cast of one.
  bool IsExact(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto* map = node.As<Map>();
    return node.As<Input>() || (map && IsFree(map->body) && node.operands.size() == 1 &&
                                graph_.node(node.operands[0]).As<Input>());
  }
};

}  // namespace

ValidGraph WithoutArgReductions(const ValidGraph& graph) {
  return ArgReductionRewriter(graph).Run();
}

}  // namespace atunner::graph
