#include "atunner/graph/match/transposition.h"

#include "atunner/graph/rewrite/rewrite.h"

namespace atunner::graph {

std::optional<TransposeForm> TransposeFormOf(const ValidGraph& graph) {
  TransposeForm form{.graph = MergeAxes(graph), .extents = {}, .order = {}};
  if (form.graph.outputs().size() != 1 || form.graph.inputs().size() != 1) return std::nullopt;
  const Node* transpose = nullptr;
  for (NodeId id = form.graph.outputs()[0].node; !form.graph.node(id).As<Input>();
       id = form.graph.node(id).operands[0]) {
    const Node& node = form.graph.node(id);
    if (IsUnaryMap(node)) continue;
    if (!node.As<Transpose>() || transpose != nullptr) return std::nullopt;
    transpose = &node;
  }
  if (transpose == nullptr) return std::nullopt;
  const Shape& from = form.graph.node(form.graph.inputs()[0]).type.shape;
  std::vector<size_t> places;  // by axis: its position among the axes longer than 1
  for (const Extent& extent : from) {
    places.push_back(form.extents.size());
    if (!extent.one()) form.extents.push_back(extent);
  }
  for (int64_t axis : transpose->As<Transpose>()->order) {
    if (!from[axis].one()) form.order.push_back(places[axis]);
  }
  if (form.extents.size() < 2 || form.a() == form.b()) return std::nullopt;
  return form;
}

}  // namespace atunner::graph
