// Gradients as autograd writes them. Norms are differentiated in the library; what the forward pass
// saved for them is computed again, and merged with it where it is the same.
#include <fmt/format.h>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Combine;
using graph::Value;

/// One element per row or channel, in the shape in which the library takes it.
Value Affine(AtenCall& call, std::string_view name, int64_t width, DType type, double fallback) {
  return call.Has(name) ? call.Reshape(call.g.Cast(call.Tensor(name), type), {width})
                        : call.Filled({width}, type, fallback);
}

}  // namespace

std::vector<Value> GeluBackward(AtenCall& call, std::string_view) {
  if (call.Text("approximate") == "tanh") {
    return Expression(
        call,
        "let t = tanh(0.7978845608028654 * (self + 0.044715 * self * self * self)) in "
        "grad_output * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * 0.7978845608028654 * "
        "(1 + 0.134145 * self * self))");
  }
  return Expression(call,
                    "grad_output * (0.5 * (1 + erf(self * 0.7071067811865476)) + "
                    "self * exp(self * self * -0.5) * 0.3989422804014327)");
}

std::vector<Value> SoftmaxBackward(AtenCall& call, std::string_view) {
  const Value y = call.Tensor("output");
  return {call.Library("softmax_backward", call.TypeOf(y), {y, call.Tensor("grad_output")},
                       {{"axis", call.Axis("dim", y)}}, 1)};
}

/// dx = dy - softmax · Σ dy
std::vector<Value> LogSoftmaxBackward(AtenCall& call, std::string_view) {
  const Value y = call.Tensor("output");
  const DType type = call.TypeOf(y);
  const Value dy = call.Wide(call.Tensor("grad_output"));
  const Value sum = call.g.Reduce(Combine::kSum, dy, {call.Axis("dim", y)}, true);
  return {call.g.Cast(call.g.Map("a - exp(b) * c", {dy, call.Wide(y), sum}), type)};
}

/// With h = (x - mean) · rstd and g = dy · weight along the normalised axes:
/// dx = rstd · (g - mean(g) - h · mean(g · h)). Sums over the other axes of dy · h and dy are the
/// gradients of weight and bias.
std::vector<Value> LayerNormBackward(AtenCall& call, std::string_view) {
  const Value x = call.Wide(call.Tensor("input")), dy = call.Wide(call.Tensor("grad_out"));
  const Integers normalised = call.Wholes("normalized_shape");
  const auto rank = static_cast<int64_t>(call.ShapeOf(x).size());
  const int64_t rows = rank - static_cast<int64_t>(normalised.size());
  if (!call.Check(rows >= 0, "normalized_shape has more axes than the input")) return {};
  Integers outer, inner;
  for (int64_t axis = 0; axis < rank; ++axis) (axis < rows ? outer : inner).push_back(axis);
  const DType wide = call.TypeOf(x), type = call.TypeOf(call.Tensor("input"));
  const Value mean = call.g.Cast(call.Tensor("mean"), wide);
  const Value rstd = call.g.Cast(call.Tensor("rstd"), wide);
  const Value hat = call.g.Map("(a - b) * c", {x, mean, rstd});
  const Value g = call.Has("weight")
                      ? call.g.Map("a * b", {dy, call.g.Cast(call.Tensor("weight"), wide)})
                      : dy;
  const Value of_g = call.g.Reduce(Combine::kMean, g, inner, true);
  const Value of_hat = call.g.Reduce(Combine::kMean, call.g.Map("a * b", {g, hat}), inner, true);
  const Value dx = call.g.Map("a * (b - c - d * e)", {rstd, g, of_g, hat, of_hat});
  const auto summed = [&](Value value) {
    if (outer.empty()) return call.g.Cast(value, type);
    return call.g.Cast(call.g.Reduce(Combine::kSum, value, outer), type);
  };
  return {call.g.Cast(dx, type), summed(call.g.Map("a * b", {dy, hat})), summed(dy)};
}

/// Under autocast weight and its gradient are wider than input and dx, so that all is computed in
/// the wide type.
std::vector<Value> BatchNormBackward(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("input");
  const int64_t channels = call.Size(x, 1);
  const DType type = call.TypeOf(x), wide = call.TypeOf(call.Wide(x));
  if (!call.Check(call.Flag("train"), "the gradient of a batch norm in inference",
                  "call model.train() before the capture"))
    return {};
  std::vector<Value> results = call.LibraryResults(
      "batch_norm_backward", wide,
      {x, Affine(call, "weight", channels, wide, 1), call.Filled({channels}, wide, 0),
       call.Tensor("grad_out")},
      {{"eps", call.Real("eps")}}, 1);
  if (results.empty()) return {};
  const DType affine = call.Has("weight") ? call.TypeOf(call.Tensor("weight")) : type;
  results[0] = call.g.Cast(results[0], type);
  for (size_t i = 1; i < results.size(); ++i) results[i] = call.g.Cast(results[i], affine);
  return results;
}

std::vector<Value> EmbeddingBackward(AtenCall& call, std::string_view) {
  if (!call.Check(!call.Flag("scale_grad_by_freq"), "scale_grad_by_freq")) return {};
  const Value dy = call.Tensor("grad_output");
  const Value rows = call.g.Cast(call.Tensor("indices"), DType::kInt64);
  const DType type = call.TypeOf(dy);
  const int64_t width = call.Size(dy, static_cast<int64_t>(call.ShapeOf(dy).size()) - 1);
  const Value zeros = call.Filled({call.Whole("num_weights"), width}, type, 0);
  // Indices out of range write nothing.
  const Value counted = call.g.Map(fmt::format("select(a == {}, -1, a)", call.Whole("padding_idx")),
                                   {rows});
  return {call.g.Add(graph::Scatter{Combine::kSum, 0, 0}, {zeros, counted, dy})};
}

/// The gradient of a slice: zeros everywhere else.
std::vector<Value> SliceBackward(AtenCall& call, std::string_view) {
  const Value dy = call.Tensor("grad_output");
  const Integers sizes = call.Wholes("input_sizes");
  const int64_t axis = call.Axis("dim", dy);
  if (!call.Check(static_cast<size_t>(axis) < sizes.size(), "dim is no axis of input_sizes"))
    return {};
  const int64_t extent = sizes[static_cast<size_t>(axis)], step = call.Whole("step");
  int64_t start = call.Has("start") ? call.Whole("start") : 0;
  if (start < 0) start += extent;
  const int64_t covered = (call.Size(dy, axis) - 1) * step + 1;
  const int64_t rest = extent - start - covered;
  if (!call.Check(start >= 0 && rest >= 0 && step >= 1, "the slice is not inside of its input"))
    return {};
  return {call.g.Add(graph::Pad{axis, start, rest, step - 1, 0}, {dy})};
}

std::vector<Value> SelectBackward(AtenCall& call, std::string_view) {
  const Value dy = call.Tensor("grad_output");
  Integers sizes = call.Wholes("input_sizes");
  const auto rank = static_cast<int64_t>(sizes.size());
  int64_t axis = call.Whole("dim"), index = call.Whole("index");
  if (axis < 0) axis += rank;
  if (!call.Check(axis >= 0 && axis < rank, "dim is no axis of input_sizes")) return {};
  int64_t& extent = sizes[static_cast<size_t>(axis)];
  if (index < 0) index += extent;
  const int64_t rest = extent - index - 1;
  if (!call.Check(index >= 0 && rest >= 0, "the index is not inside of its axis")) return {};
  extent = 1;
  return {call.g.Add(graph::Pad{axis, index, rest, 0, 0}, {call.Reshape(dy, sizes)})};
}

}  // namespace atunner::importers
