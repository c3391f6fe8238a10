// Normalisations.
#include <algorithm>
#include <numeric>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Value;

/// A tensor of one number per channel; constant where the model has none.
Value PerChannel(AtenCall& call, std::string_view name, int64_t channels, DType type,
                 double fallback) {
  return call.Has(name) ? call.g.Cast(call.Tensor(name), type)
                        : call.Filled({channels}, type, fallback);
}

/// The mean of x over these axes, which stay with extent 1, and the reciprocal deviation.
std::vector<Value> Statistics(AtenCall& call, Value x, const Integers& axes) {
  if (!call.g.ok()) return {};
  const Value wide = call.Wide(x);
  const Value mean = call.g.Reduce(graph::Combine::kMean, wide, axes, true);
  const Value centred = call.g.Map("a - b", {wide, mean});
  const Value variance = call.g.Reduce(graph::Combine::kMean, call.g.Map("a * a", {centred}), axes,
                                       true);
  const Value eps = call.g.Scalar(call.TypeOf(wide), call.Real("eps"));
  return {mean, call.g.Map("rsqrt(a + b)", {variance, eps})};
}

/// y, and the statistics of each channel of x.
std::vector<Value> WithStatistics(AtenCall& call, Value x, Value y) {
  Integers axes = {0};
  for (size_t axis = 2; axis < call.ShapeOf(x).size(); ++axis)
    axes.push_back(static_cast<int64_t>(axis));
  std::vector<Value> results = {y};
  for (const Value each : Statistics(call, x, axes))
    results.push_back(call.Reshape(each, {call.Size(x, 1)}));
  return results;
}

}  // namespace

/// Several normalised axes are one row of the library's operator.
std::vector<Value> LayerNorm(AtenCall& call, std::string_view text) {
  const Value x = call.Tensor("input");
  const Integers sizes = call.SizesOf(x);
  const Integers normalised = call.Wholes("normalized_shape");
  const bool fits = !normalised.empty() && normalised.size() <= sizes.size() &&
                    std::equal(normalised.rbegin(), normalised.rend(), sizes.rbegin());
  if (!call.Check(fits, "normalized_shape is not the end of the input's shape")) return {};
  Integers rows(sizes.begin(), sizes.end() - static_cast<int64_t>(normalised.size()));
  const int64_t width = CountOf(normalised);
  rows.push_back(width);
  const bool flat = normalised.size() == 1;
  const DType type = call.TypeOf(x);
  std::vector<Value> operands = {flat ? x : call.Reshape(x, rows)};
  const auto affine = [&](std::string_view name, double fallback) {
    if (!call.Has(name)) return call.Filled({width}, type, fallback);
    const Value given = call.g.Cast(call.Tensor(name), type);
    return flat ? given : call.Reshape(given, {width});
  };
  operands.push_back(affine("weight", 1));
  if (text == "layer_norm") operands.push_back(affine("bias", 0));
  // torch.nn.RMSNorm takes the unit of the type where no eps is given.
  const double eps = call.Has("eps") ? call.Real("eps") : 2 * UnitRoundoff(type);
  const Value y = call.Library(text, type, operands, {{"eps", eps}}, 1);
  return {flat ? y : call.Reshape(y, sizes)};
}

/// y, and the mean and the reciprocal deviation of each row.
std::vector<Value> LayerNormWithStatistics(AtenCall& call, std::string_view text) {
  std::vector<Value> results = LayerNorm(call, text);
  if (!call.g.ok()) return {};
  const Value x = call.Tensor("input");
  const auto rank = static_cast<int64_t>(call.ShapeOf(x).size());
  Integers axes;
  for (auto i = static_cast<int64_t>(call.Wholes("normalized_shape").size()); i > 0; --i)
    axes.push_back(rank - i);
  for (const Value each : Statistics(call, x, axes)) results.push_back(each);
  return results;
}

std::vector<Value> GroupNorm(AtenCall& call, std::string_view text) {
  const Value x = call.Tensor("input");
  const int64_t channels = call.Size(x, 1);
  const DType type = call.TypeOf(x);
  return {call.Library("group_norm", type,
                       {x, PerChannel(call, "weight", channels, type, 1),
                        PerChannel(call, "bias", channels, type, 0)},
                       {{"eps", call.Real("eps")}, {"groups", call.Whole(text)}}, 1)};
}

/// In inference the moments are given; in training they are those of the batch, which are results
/// too, and the running ones stay as they are.
std::vector<Value> BatchNorm(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("input");
  const int64_t channels = call.Size(x, 1);
  const DType type = call.TypeOf(x);
  const Value weight = PerChannel(call, "weight", channels, type, 1);
  const Value bias = PerChannel(call, "bias", channels, type, 0);
  const Attributes eps = {{"eps", call.Real("eps")}};
  const bool trains = (call.Has("training") && call.Flag("training")) || !call.Has("running_mean");
  if (trains)
    return WithStatistics(call, x, call.Library("batch_norm", type, {x, weight, bias}, eps, 1));
  const Value mean = PerChannel(call, "running_mean", channels, type, 0);
  const Value variance = PerChannel(call, "running_var", channels, type, 1);
  return {call.Library("batch_norm_inference", type, {x, mean, variance, weight, bias}, eps, 1)};
}

std::vector<Value> InstanceNorm(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("input");
  const int64_t channels = call.Size(x, 1);
  const DType type = call.TypeOf(x);
  if (!call.Check(call.Flag("use_input_stats"), "instance norm by running moments",
                  "track_running_stats=False"))
    return {};
  return {call.Library("instance_norm", type,
                       {x, PerChannel(call, "weight", channels, type, 1),
                        PerChannel(call, "bias", channels, type, 0)},
                       {{"eps", call.Real("eps")}}, 1)};
}

}  // namespace atunner::importers
