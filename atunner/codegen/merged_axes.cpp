#include "atunner/codegen/merged_axes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <variant>

namespace atunner {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValidGraph;

/// How many axes at the front and at the back no node tells apart.
struct Untouched {
  size_t front = SIZE_MAX, back = SIZE_MAX;
  bool touched = false;

  void Touch(int64_t first, int64_t last, size_t rank) {
    front = std::min(front, static_cast<size_t>(first));
    back = std::min(back, rank - 1 - static_cast<size_t>(last));
    touched = true;
  }
};

template <class T>
constexpr bool kHasAxis =
    std::is_same_v<T, graph::Pad> || std::is_same_v<T, graph::Slice> || std::is_same_v<T, graph::Reverse> ||
    std::is_same_v<T, graph::Concat> || std::is_same_v<T, graph::Window>;

bool IsScalar(const Node& node) { return node.type.shape.empty(); }

/// False for a node whose axes cannot be followed.
bool Add(const ValidGraph& graph, const Node& node, Untouched& found) {
  if (node.As<graph::Input>()) return true;
  if (node.As<graph::Constant>()) return IsScalar(node);
  if (const auto* map = node.As<graph::Map>())
    return !map->body.Uses(graph::ScalarOp::kIndex) && !map->body.Uses(graph::ScalarOp::kExtent);
  const size_t rank = graph.node(node.operands[0]).type.rank();
  if (const auto* reduce = node.As<graph::Reduce>()) {
    if (reduce->keep) return false;
    const auto [first, last] = std::ranges::minmax(reduce->axes);
    found.Touch(first, last, rank);
    return true;
  }
  return std::visit(
      [&](const auto& operation) {
        if constexpr (kHasAxis<std::decay_t<decltype(operation)>>) {
          found.Touch(operation.axis, operation.axis, rank);
          return true;
        }
        return false;
      },
      node.operation);
}

bool SameEnds(const Shape& a, const Shape& b, const Untouched& ends) {
  return a.size() >= ends.front + ends.back && std::equal(a.begin(), a.begin() + ends.front, b.begin()) &&
         std::equal(a.end() - ends.back, a.end(), b.end() - ends.back);
}

std::optional<Untouched> Find(const ValidGraph& graph) {
  Untouched found;
  for (const Node& node : graph.nodes()) {
    if (!Add(graph, node, found)) return std::nullopt;
  }
  if (!found.touched) return std::nullopt;
  const Shape& usual = graph.node(graph.outputs()[0].node).type.shape;
  for (const Node& node : graph.nodes()) {
    if (!IsScalar(node) && !SameEnds(node.type.shape, usual, found)) return std::nullopt;
  }
  return found.front > 1 || found.back > 1 ? std::optional(found) : std::nullopt;
}

class Merger {
 public:
  Merger(const ValidGraph& graph, const Untouched& ends)
      : graph_(graph),
        ends_(ends),
        builder_(graph.name()),
        shift_(static_cast<int64_t>(ends.front > 1 ? ends.front - 1 : 0)) {}

  ValidGraph Run() {
    for (const auto& [name, range] : graph_.symbols()) (void)builder_.Symbol(name, range);
    for (const Node& node : graph_.nodes()) {
      values_.push_back(Copy(node));
      if (!node.As<graph::Input>() && !node.name.empty()) builder_.Name(values_.back(), node.name);
    }
    for (const graph::Output& output : graph_.outputs()) builder_.Output(output.name, values_[output.node]);
    auto finished = std::move(builder_).Finish();
    return finished ? *std::move(finished) : graph_;
  }

 private:
  Shape Merged(const Shape& shape) const {
    if (shape.empty()) return shape;
    Shape merged(shape.begin() + static_cast<int64_t>(ends_.front), shape.end() - static_cast<int64_t>(ends_.back));
    if (ends_.front > 0)
      merged.insert(merged.begin(),
                    graph::ElementCount({shape.begin(), shape.begin() + static_cast<int64_t>(ends_.front)}));
    if (ends_.back > 0)
      merged.push_back(graph::ElementCount({shape.end() - static_cast<int64_t>(ends_.back), shape.end()}));
    return merged;
  }
  graph::Value Copy(const Node& node) {
    if (node.As<graph::Input>()) return builder_.Input(node.name, {node.type.dtype, Merged(node.type.shape)});
    if (const auto* constant = node.As<graph::Constant>()) return builder_.Constant(node.type, constant->values);
    std::vector<graph::Value> operands;
    for (NodeId operand : node.operands) operands.push_back(values_[operand]);
    if (const auto* map = node.As<graph::Map>()) return builder_.Map(map->body, operands, Merged(node.type.shape));
    graph::Operation operation = node.operation;
    if (auto* reduce = std::get_if<graph::Reduce>(&operation)) {
      for (int64_t& axis : reduce->axes) axis -= shift_;
    }
    std::visit(
        [&](auto& each) {
          if constexpr (kHasAxis<std::decay_t<decltype(each)>>) each.axis -= shift_;
        },
        operation);
    return builder_.Add(std::move(operation), std::move(operands));
  }

  const ValidGraph& graph_;
  Untouched ends_;
  graph::GraphBuilder builder_;
  int64_t shift_;
  std::vector<graph::Value> values_;
};

}  // namespace

ValidGraph MergeAxes(const ValidGraph& graph) {
  const auto ends = Find(graph);
  return ends ? Merger(graph, *ends).Run() : graph;
}

}  // namespace atunner
