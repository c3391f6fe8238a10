#include "atunner/graph/match/inline_work.h"

#include <optional>

namespace atunner::graph {
namespace {

constexpr size_t kLargestTable = 4096;  // elements of a constant table in a kernel's text

/// The number of elements, or nullopt if an extent is symbolic.
std::optional<double> KnownCount(const Shape& extents) {
  const Extent count = ElementCount(extents);
  return count.constant() ? std::optional(static_cast<double>(count.factor())) : std::nullopt;
}

Shape ReducedExtents(const Shape& from, const Reduce& reduce) {
  Shape reduced;
  for (int64_t axis : reduce.axes) reduced.push_back(from[axis]);
  return reduced;
}

/// How many elements of its operand one element of `node` combines; nullopt if that is not a short
/// plain sum.
std::optional<double> CombinedElements(const ValidGraph& graph, const Node& node) {
  const auto operand_shape = [&] { return graph.node(node.operands[0]).type.shape; };
  if (const auto* reduce = node.As<Reduce>()) {
    if (reduce->op == Combine::kArgMax || reduce->op == Combine::kArgMin) return std::nullopt;
    return KnownCount(ReducedExtents(operand_shape(), *reduce));
  }
  if (const auto* fold = node.As<Fold>())
    return static_cast<double>(operand_shape()[fold->axis + 1].factor());
  if (node.As<Contract>()) return std::nullopt;
  return 1;
}

}  // namespace

InlineWork InlineWorkOf(const ValidGraph& graph, NodeId from,
                        const std::function<bool(NodeId)>& available) {
  const Node& node = graph.node(from);
  if (available && available(from)) return {true, 0};
  if (node.As<Input>()) return {true, 1};
  if (const auto* constant = node.As<Constant>())
    return {constant->values.size() <= kLargestTable, constant->values.size() == 1 ? 0.0 : 1.0};
  if (node.As<Scan>() || node.As<Scatter>() || node.As<Sort>()) return {};
  InlineWork work{true, 0};
  for (NodeId operand : node.operands) {
    const InlineWork inner = InlineWorkOf(graph, operand, available);
    work.possible = work.possible && inner.possible;
    work.loads += inner.loads;
  }
  const std::optional<double> times = CombinedElements(graph, node);
  work.possible = work.possible && times.has_value();
  work.loads *= times.value_or(1);
  return work;
}

bool CanInline(const ValidGraph& graph, NodeId from, double most,
               const std::function<bool(NodeId)>& available) {
  const InlineWork work = InlineWorkOf(graph, from, available);
  return work.possible && work.loads <= most;
}

}  // namespace atunner::graph
