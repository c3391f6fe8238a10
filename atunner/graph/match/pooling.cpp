#include "atunner/graph/match/pooling.h"

#include <algorithm>

#include "atunner/graph/evaluate/evaluate_sums.h"
#include "atunner/graph/rewrite/rewrite.h"

namespace atunner::graph {
namespace {

bool Pools(Combine op) {
  return op == Combine::kMax || op == Combine::kMin || op == Combine::kSum || op == Combine::kMean;
}

NodeId BelowMaps(const ValidGraph& graph, NodeId id) {
  while (IsUnaryMap(graph.node(id))) id = graph.node(id).operands[0];
  return id;
}

/// Pooling by a reduction of windows: follows its operand through windows, pads and maps to the
/// input.
std::optional<PoolingForm> WindowsOf(const ValidGraph& graph) {
  if (graph.outputs().size() != 1 || graph.inputs().size() != 1) return std::nullopt;
  PoolingForm form{.graph = graph, .reduce = BelowMaps(graph, graph.outputs()[0].node)};
  const TensorType& out = graph.node(form.reduce).type;
  const auto* reduce = graph.node(form.reduce).As<Reduce>();
  if (!reduce || !Pools(reduce->op) || reduce->keep || !IsFloat(out.dtype)) return std::nullopt;
  form.op = reduce->op;
  const auto rank = static_cast<int64_t>(out.rank()),
             pooled = static_cast<int64_t>(reduce->axes.size());
  const int64_t first = rank - pooled;
  if (pooled == 0 || pooled > 3) return std::nullopt;
  const auto axis_at = [&](int64_t axis) -> ConvAxis& { return form.axes[3 - rank + axis]; };
  NodeId id = graph.node(form.reduce).operands[0];
  for (int64_t axis = rank; axis-- > first; id = graph.node(id).operands[0]) {
    const auto* window = graph.node(id).As<Window>();
    const int64_t inside = 2 * axis - first + 1;  // the axis of the elements inside a window
    const bool reduced = std::ranges::find(reduce->axes, inside) != reduce->axes.end();
    if (!window || window->axis + 1 != inside || !reduced) return std::nullopt;
    axis_at(axis) = {.taps = window->size, .stride = window->stride, .dilation = window->dilation};
  }
  for (; const auto* pad = graph.node(id).As<Pad>(); id = graph.node(id).operands[0]) {
    // The border must have the neutral value of the reduction.
    const bool neutral = pad->value == Neutral(reduce->op, DType::kFloat64).real;
    if (pad->axis < first || pad->inner != 0 || pad->low < 0 || !neutral) return std::nullopt;
    axis_at(pad->axis).shift -= pad->low;
  }
  form.operand = id;
  const Node& input = graph.node(BelowMaps(graph, id));
  if (!input.As<Input>()) return std::nullopt;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const Extent& in = input.type.shape[axis];
    if (axis < first) {
      form.images = form.images * in;
      continue;
    }
    if (!in.constant()) return std::nullopt;
    axis_at(axis).in = in.factor();
    axis_at(axis).out = out.shape[axis].factor();
  }
  return form;
}

/// A depthwise convolution whose tensors are contiguous with the channels before the pixels.
std::optional<PoolingForm> DepthwiseOf(const ValidGraph& graph) {
  const auto conv = ConvFormOf(graph);
  if (!conv || conv->channels != 1 || conv->filters != 1 || conv->Phases() != 1)
    return std::nullopt;
  PoolingForm form{.graph = graph,
                   .images = conv->images * Extent(conv->groups),
                   .axes = conv->axes,
                   .conv = conv};
  int64_t in = 1;
  int64_t out = 1;
  for (size_t i = conv->axes.size(); i-- > 0;) {
    const ConvAxis& axis = conv->axes[i];
    if ((axis.in > 1 && axis.x != in) || (axis.out > 1 && axis.y != out) || axis.shift > 0)
      return std::nullopt;
    in *= axis.in;
    out *= axis.out;
  }
  const auto rows = [&](const ConvTensor& tensor, int64_t elements) {
    return (conv->groups == 1 || tensor.group == elements) &&
           (conv->images.one() || tensor.image == conv->groups * elements);
  };
  const bool floats = std::ranges::all_of(graph.inputs(), [&](NodeId id) {
    return graph.node(id).type.dtype == graph.node(graph.outputs()[0].node).type.dtype &&
           IsFloat(graph.node(id).type.dtype);
  });
  form.operand = graph.inputs()[0];
  form.reduce = graph.outputs()[0].node;
  return floats && rows(conv->x, in) && rows(conv->y, out) ? std::optional(form) : std::nullopt;
}

}  // namespace

std::optional<PoolingForm> PoolingFormOf(const ValidGraph& graph) {
  auto form = WindowsOf(graph);
  return form ? std::move(form) : DepthwiseOf(graph);
}

}  // namespace atunner::graph
