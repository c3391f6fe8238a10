#include "atunner/graph/match/inline_work.h"

#include <optional>
#include <unordered_map>

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

/// Visits each node once: values that are used several times would otherwise take time exponential
/// in the depth of the graph.
class InlineWorkFinder {
 public:
  InlineWorkFinder(const ValidGraph& graph, const std::function<bool(NodeId)>& available)
      : graph_(graph), available_(available) {}

  InlineWork Of(NodeId id) {
    if (const auto found = known_.find(id); found != known_.end()) return found->second;
    return known_[id] = Found(id);
  }

 private:
  InlineWork Found(NodeId id) {
    const Node& node = graph_.node(id);
    if (available_ && available_(id)) return {true, 0};
    if (node.As<Input>()) return {true, 1};
    if (const auto* constant = node.As<Constant>())
      return {constant->values.size() <= kLargestTable, constant->values.size() == 1 ? 0.0 : 1.0};
    if (node.As<Scan>() || node.As<Scatter>() || node.As<Sort>()) return {};
    InlineWork work{true, 0};
    for (NodeId operand : node.operands) {
      const InlineWork inner = Of(operand);
      work.possible = work.possible && inner.possible;
      work.loads += inner.loads;
    }
    const std::optional<double> times = CombinedElements(graph_, node);
    work.possible = work.possible && times.has_value();
    work.loads *= times.value_or(1);
    return work;
  }

  const ValidGraph& graph_;
  const std::function<bool(NodeId)>& available_;
  std::unordered_map<NodeId, InlineWork> known_;
};

}  // namespace

InlineWork InlineWorkOf(const ValidGraph& graph, NodeId from,
                        const std::function<bool(NodeId)>& available) {
  return InlineWorkFinder(graph, available).Of(from);
}

bool CanInline(const ValidGraph& graph, NodeId from, double most,
               const std::function<bool(NodeId)>& available) {
  const InlineWork work = InlineWorkOf(graph, from, available);
  return work.possible && work.loads <= most;
}

}  // namespace atunner::graph
