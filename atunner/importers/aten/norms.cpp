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

/// cuDNN's operator has another name for it.
double Epsilon(AtenCall& call) { return call.Real(call.Has("epsilon") ? "epsilon" : "eps"); }

struct Moments {
  Value mean, variance;
};

/// Mean and variance of x over these axes, which stay with extent 1.
Moments MomentsOf(AtenCall& call, Value x, const Integers& axes) {
  const Value wide = call.Wide(x);
  const Value mean = call.g.Reduce(graph::Combine::kMean, wide, axes, true);
  const Value centred = call.g.Map("a - b", {wide, mean});
  return {mean, call.g.Reduce(graph::Combine::kMean, call.g.Map("a * a", {centred}), axes, true)};
}

/// The mean of x over these axes, and the reciprocal deviation.
std::vector<Value> Statistics(AtenCall& call, Value x, const Integers& axes) {
  if (!call.g.ok()) return {};
  const Moments moments = MomentsOf(call, x, axes);
  const Value eps = call.g.Scalar(call.TypeOf(moments.mean), Epsilon(call));
  return {moments.mean, call.g.Map("rsqrt(a + b)", {moments.variance, eps})};
}

/// All axes but that of the channels.
Integers AxesOfChannels(const AtenCall& call, Value x) {
  Integers axes = {0};
  for (size_t axis = 2; axis < call.ShapeOf(x).size(); ++axis)
    axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

/// y, and the statistics of each channel of x.
std::vector<Value> WithStatistics(AtenCall& call, Value x, Value y) {
  std::vector<Value> results = {y};
  for (const Value each : Statistics(call, x, AxesOfChannels(call, x)))
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
/// too, and the running ones stay as they are. Weights may be wider than the input.
std::vector<Value> BatchNorm(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("input");
  const int64_t channels = call.Size(x, 1);
  const DType type = call.TypeOf(x), wide = call.TypeOf(call.Wide(x));
  const Value weight = PerChannel(call, "weight", channels, wide, 1);
  const Value bias = PerChannel(call, "bias", channels, wide, 0);
  const Attributes eps = {{"eps", Epsilon(call)}};
  const auto norm = [&](std::string_view name, const std::vector<Value>& operands) {
    return call.g.Cast(call.Library(name, wide, operands, eps, 1), type);
  };
  const bool trains = (call.Has("training") && call.Flag("training")) || !call.Has("running_mean");
  if (trains) return WithStatistics(call, x, norm("batch_norm", {x, weight, bias}));
  const Value mean = PerChannel(call, "running_mean", channels, wide, 0);
  const Value variance = PerChannel(call, "running_var", channels, wide, 1);
  return {norm("batch_norm_inference", {x, mean, variance, weight, bias})};
}

/// A batch norm in training with the new running moments as results: they move towards those of the
/// batch, whose variance is the unbiased one. `text` says how many results stand before them.
std::vector<Value> BatchNormWithUpdate(AtenCall& call, std::string_view text) {
  std::vector<Value> results = BatchNorm(call, "");
  if (!call.g.ok() || (call.Has("training") && !call.Flag("training"))) return results;
  // cuDNN's reserved memory is for the gradient alone: nothing reads it in inference.
  if (text == "4") results.push_back(results.back());
  const Value x = call.Tensor("input");
  const int64_t channels = call.Size(x, 1);
  const double count = static_cast<double>(CountOf(call.SizesOf(x))) /
                       static_cast<double>(channels);
  const Moments batch = MomentsOf(call, x, AxesOfChannels(call, x));
  const DType type = call.TypeOf(batch.mean);
  const auto moved = [&](std::string_view running, Value towards, double factor) {
    const double momentum = call.Real("momentum");
    return call.g.Map("a * b + c * d",
                      {call.Tensor(running), call.g.Scalar(type, 1 - momentum),
                       call.Reshape(towards, {channels}), call.g.Scalar(type, momentum * factor)});
  };
  results.push_back(moved("running_mean", batch.mean, 1));
  results.push_back(moved("running_var", batch.variance, count / (count - 1)));
  return results;
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
