// Normalisations: layers, groups, instances, batches, root mean squares.
#include <fmt/format.h>

#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

const Attribute kEps = {"eps", 1e-5, "added to the variance"};

/// (x - mean) / sqrt(variance + eps) over `axes`.
Value Normalised(Call& call, Value x, const std::vector<int64_t>& axes) {
  GraphBuilder& g = call.g;
  const Value centred = g.Map("a - b", {x, g.Reduce(Combine::kMean, x, axes, true)});
  const Value variance = g.Reduce(Combine::kMean, g.Map("a * a", {centred}), axes, true);
  const Value eps = g.Scalar(g.TypeOf(x).dtype, call.Real("eps"));
  return g.Map("a * rsqrt(b + c)", {centred, variance, eps});
}

/// Weight and bias of extent C, broadcast along the axis of channels.
Value Affine(Call& call, Value x, Value like, size_t axis) {
  Shape shape(call.g.TypeOf(like).rank() - axis, Extent(1));
  shape[0] = call.g.TypeOf(like).shape[axis];
  const Value weight = call.g.Reshape(call.Wide(call.Input("weight", {shape[0]})), shape);
  const Value bias = call.g.Reshape(call.Wide(call.Input("bias", {shape[0]})), shape);
  return call.g.Map("a * b + c", {x, weight, bias});
}

bool HasChannels(Call& call, size_t least) {
  return call.Check(call.shape().size() >= least,
                    "a shape of rank " + std::to_string(call.shape().size()),
                    "channels are the second axis: N,C,…");
}

std::vector<int64_t> AxesFrom(int64_t first, size_t rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < static_cast<int64_t>(rank); ++axis) axes.push_back(axis);
  return axes;
}

void BuildRmsNorm(Call& call) {
  if (!call.Check(!call.shape().empty(), "a scalar has no axis to normalise")) return;
  const Value x = call.Wide(call.Input("x", call.shape()));
  const Value weight = call.Wide(call.Input("weight", {call.shape().back()}));
  const Value squares = call.g.Reduce(Combine::kMean, call.g.Map("a * a", {x}), {-1}, true);
  const Value eps = call.g.Scalar(call.g.TypeOf(x).dtype, call.Real("eps"));
  call.Output("y", call.g.Map("a * rsqrt(b + d) * c", {x, squares, weight, eps}));
}

void BuildLayerNorm(Call& call) {
  if (!call.Check(!call.shape().empty(), "a scalar has no axis to normalise")) return;
  const Value x = call.Wide(call.Input("x", call.shape()));
  call.Output("y", Affine(call, Normalised(call, x, {-1}), x, call.shape().size() - 1));
}

void BuildGroupNorm(Call& call) {
  if (!HasChannels(call, 2)) return;
  const Shape full = call.shape();
  const int64_t groups = call.Whole("groups");
  const auto inside = groups > 0 ? full[1].Divided(Extent(groups)) : std::nullopt;
  if (!call.Check(inside.has_value(),
                  "groups=" + std::to_string(groups) + " of " + full[1].ToString() + " channels",
                  "the groups must divide the channels"))
    return;
  // Weight and bias get the shape of groups, so that only the result needs a reshape.
  Shape grouped = {full[0], Extent(groups), *inside};
  grouped.insert(grouped.end(), full.begin() + 2, full.end());
  Shape channels(grouped.size() - 1, Extent(1));
  channels[0] = grouped[1];
  channels[1] = grouped[2];
  GraphBuilder& g = call.g;
  const Value x = g.Reshape(call.Wide(call.Input("x", full)), grouped);
  const Value weight = g.Reshape(call.Wide(call.Input("weight", {full[1]})), channels);
  const Value bias = g.Reshape(call.Wide(call.Input("bias", {full[1]})), channels);
  const Value y = g.Map("a * b + c",
                        {Normalised(call, x, AxesFrom(2, grouped.size())), weight, bias});
  g.Output("y", g.Reshape(g.Cast(y, call.dtype()), full));
}

void BuildInstanceNorm(Call& call) {
  if (!HasChannels(call, 3)) return;
  const Value x = call.Wide(call.Input("x", call.shape()));
  call.Output("y", Affine(call, Normalised(call, x, AxesFrom(2, call.shape().size())), x, 1));
}

void BuildBatchNorm(Call& call) {
  if (!HasChannels(call, 2)) return;
  const Value x = call.Wide(call.Input("x", call.shape()));
  std::vector<int64_t> axes = AxesFrom(1, call.shape().size());
  axes[0] = 0;  // every axis but the channels
  call.Output("y", Affine(call, Normalised(call, x, axes), x, 1));
}

/// batch_norm in training: also updates the running moments that inference uses.
void BuildBatchNormTraining(Call& call) {
  if (!HasChannels(call, 2)) return;
  GraphBuilder& g = call.g;
  const Shape shape = call.shape();
  const Value x = call.Wide(call.Input("x", shape));
  std::vector<int64_t> axes = AxesFrom(1, shape.size());
  axes[0] = 0;
  const Value mean = g.Reduce(Combine::kMean, x, axes, true);
  const Value centred = g.Map("a - b", {x, mean});
  const Value variance = g.Reduce(Combine::kMean, g.Map("a * a", {centred}), axes, true);
  const Value eps = g.Scalar(g.TypeOf(x).dtype, call.Real("eps"));
  call.Output("y", Affine(call, g.Map("a * rsqrt(b + c)", {centred, variance, eps}), x, 1));
  const Extent count = ElementCount(shape);
  const auto n = static_cast<double>(count.factor()) / static_cast<double>(shape[1].factor());
  if (!call.Check(count.constant() && n > 1, "the variance of one element",
                  "more elements in a channel"))
    return;
  const double momentum = call.Real("momentum");
  const auto running = [&](const std::string& name, Value now, double factor) {
    const Value before = call.Wide(call.Input("running_" + name, {shape[1]}));
    const std::string body = fmt::format("a * {} + b * {}", 1 - momentum, momentum * factor);
    call.Output("running_" + name + "_next", g.Map(body, {before, g.Reshape(now, {shape[1]})}));
  };
  running("mean", mean, 1);
  running("variance", variance, n / (n - 1));
}

/// The beginning of a transformer layer: the residual sum, which is an output too, and its norm.
void BuildAddRmsNorm(Call& call) {
  if (!call.Check(!call.shape().empty(), "a scalar has no axis to normalise")) return;
  GraphBuilder& g = call.g;
  const Value sum = g.Map("a + b", {call.Wide(call.Input("x", call.shape())),
                                    call.Wide(call.Input("residual", call.shape()))});
  const Value weight = call.Wide(call.Input("weight", {call.shape().back()}));
  const Value squares = g.Reduce(Combine::kMean, g.Map("a * a", {sum}), {-1}, true);
  const Value eps = g.Scalar(g.TypeOf(sum).dtype, call.Real("eps"));
  call.Output("y", g.Map("a * rsqrt(b + d) * c", {sum, squares, weight, eps}));
  call.Output("sum", sum);
}

void BuildBatchNormInference(Call& call) {
  if (!HasChannels(call, 2)) return;
  const Value x = call.Wide(call.Input("x", call.shape()));
  Shape shape(call.shape().size() - 1, Extent(1));
  shape[0] = call.shape()[1];
  const Value mean = call.g.Reshape(call.Wide(call.Input("mean", {shape[0]})), shape);
  const Value variance = call.g.Reshape(call.Wide(call.Input("variance", {shape[0]})), shape);
  const Value eps = call.g.Scalar(call.g.TypeOf(x).dtype, call.Real("eps"));
  // A variance is never negative; the absolute value gives random test inputs a meaning.
  call.Output(
      "y", Affine(call, call.g.Map("(a - b) * rsqrt(abs(c) + d)", {x, mean, variance, eps}), x, 1));
}

}  // namespace

void AddNorms(std::vector<LibraryOperator>& library) {
  const char* rows = "one shape whose last dimension is normalised: request.shapes 8,1024,4096";
  const char* image = "N,C,…: request.shapes 8,64,56,56";
  library.push_back({"rms_norm",
                     "rms_norm(x[…, C], weight[C]) → y",
                     "x / sqrt(mean(x²) + eps) · weight along the last axis",
                     rows,
                     {{"eps", 1e-6, "added to the mean square"}},
                     BuildRmsNorm,
                     true,
                     {{3, 8}}});
  library.push_back({"add_rms_norm",
                     "add_rms_norm(x[…, C], residual[…, C], weight[C]) → y, sum",
                     "rms_norm of x + residual, and the sum",
                     rows,
                     {{"eps", 1e-6, "added to the mean square"}},
                     BuildAddRmsNorm,
                     true,
                     {{3, 8}}});
  library.push_back({"layer_norm",
                     "layer_norm(x[…, C], weight[C], bias[C]) → y",
                     "(x - mean) / sqrt(variance + eps) · weight + bias along the last axis",
                     rows,
                     {kEps},
                     BuildLayerNorm,
                     true,
                     {{3, 8}}});
  library.push_back({"group_norm",
                     "group_norm(x[N, C, …], weight[C], bias[C]) → y",
                     "normalised over groups of channels and all pixels",
                     image,
                     {kEps, {"groups", int64_t{2}, "groups of channels"}},
                     BuildGroupNorm,
                     true,
                     {{2, 4, 3, 5}}});
  library.push_back({"instance_norm",
                     "instance_norm(x[N, C, …], weight[C], bias[C]) → y",
                     "normalised over the pixels of each channel",
                     image,
                     {kEps},
                     BuildInstanceNorm,
                     true,
                     {{2, 3, 4, 5}}});
  library.push_back({"batch_norm",
                     "batch_norm(x[N, C, …], weight[C], bias[C]) → y",
                     "normalised over batch and pixels, as in training",
                     image,
                     {kEps},
                     BuildBatchNorm,
                     true,
                     {{3, 4, 5}}});
  library.push_back({"batch_norm_training",
                     "batch_norm_training(x[N, C, …], weight[C], bias[C], running_mean[C], "
                     "running_variance[C]) → y, …",
                     "batch_norm, and the running moments after it",
                     image,
                     {kEps, {"momentum", 0.1, "weight of this batch"}},
                     BuildBatchNormTraining,
                     true,
                     {{3, 4, 5}}});
  library.push_back(
      {"batch_norm_inference",
       "batch_norm_inference(x[N, C, …], mean[C], variance[C], weight[C], bias[C]) → y",
       "normalised by given moments, with the absolute value of the variance",
       image,
       {kEps},
       BuildBatchNormInference,
       true,
       {{3, 4, 5}}});
}

}  // namespace atunner::graph
