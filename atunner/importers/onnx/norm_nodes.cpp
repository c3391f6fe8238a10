// Normalisations.
#include <fmt/format.h>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Combine;
using graph::Value;

/// The axes of x from `first` on.
Integers AxesFrom(OnnxCall& call, Value x, int64_t first) {
  Integers axes;
  for (int64_t axis = first; axis < call.Rank(x); ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace

/// In training the moments are those of the batch, and the further results are the running ones.
std::vector<Value> BatchNormalization(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const bool trains = call.Whole("training_mode", 0) != 0;
  if (!trains && call.UsesOutput(1))
    return {call.Unsupported("results of batch normalisation that only training has")};
  Value mean = call.In(3);
  Value variance = call.In(4);
  std::vector<Value> running;
  if (trains) {
    Integers axes = AxesFrom(call, x, 2);
    axes.insert(axes.begin(), 0);
    const Value wide = call.Wide(x);
    const Value centre = call.g.Reduce(Combine::kMean, wide, axes, true);
    const Value squares = call.g.Map("let t = a - b in t * t", {wide, centre});
    const auto of_batch = [&](Value moment, Value given) {
      return call.g.Cast(call.Reshape(moment, {call.Size(x, 1)}), call.TypeOf(given));
    };
    const Value batch_mean = of_batch(centre, mean);
    const Value batch_variance = of_batch(call.g.Reduce(Combine::kMean, squares, axes, true),
                                          variance);
    const double momentum = call.Real("momentum", 0.9);
    const std::string mixed = fmt::format("a * {} + b * {}", momentum, 1 - momentum);
    running = {call.g.Map(mixed, {mean, batch_mean}),
               call.g.Map(mixed, {variance, batch_variance})};
    mean = batch_mean;
    variance = batch_variance;
  }
  std::vector<Value> results = call.Aten("aten.batch_norm.default",
                                         {{"input", call.Ref(x)},
                                          {"weight", call.Ref(call.In(1))},
                                          {"bias", call.Ref(call.In(2))},
                                          {"running_mean", call.Ref(mean)},
                                          {"running_var", call.Ref(variance)},
                                          {"training", false},
                                          {"eps", call.Real("epsilon", 1e-5)}});
  results.insert(results.end(), running.begin(), running.end());
  return results;
}

std::vector<Value> InstanceNormalization(OnnxCall& call, std::string_view) {
  return call.Aten("aten.instance_norm.default", {{"input", call.Ref(call.In(0))},
                                                  {"weight", call.Ref(call.In(1))},
                                                  {"bias", call.Ref(call.In(2))},
                                                  {"use_input_stats", true},
                                                  {"eps", call.Real("epsilon", 1e-5)}});
}

/// The second and third results are the mean, and one over the standard deviation.
std::vector<Value> LayerNormalization(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t axis = call.Axis(call.Whole("axis", -1), call.Rank(x));
  const Integers sizes = call.SizesOf(x);
  std::vector<NamedArgument> arguments{
      {"input", call.Ref(x)},
      {"normalized_shape", Integers(sizes.begin() + axis, sizes.end())},
      {"weight", call.Ref(call.In(1))},
      {"eps", call.Real("epsilon", 1e-5)}};
  if (call.Has(2)) arguments.push_back({"bias", call.Ref(call.In(2))});
  std::vector<Value> results = call.Aten("aten.layer_norm.default", std::move(arguments));
  if (!call.UsesOutput(1) && !call.UsesOutput(2)) return results;
  const Integers axes = AxesFrom(call, x, axis);
  const Value wide = call.Wide(x);
  const Value mean = call.g.Reduce(Combine::kMean, wide, axes, true);
  const Value squares = call.g.Map("let t = a - b in t * t", {wide, mean});
  const Value variance = call.g.Reduce(Combine::kMean, squares, axes, true);
  const double eps = call.Real("epsilon", 1e-5);
  results.push_back(mean);
  results.push_back(call.g.Map(fmt::format("1 / sqrt(a + {})", eps), {variance}));
  return results;
}

/// Before operator set 21 there was a scale and a bias for each group, not for each channel.
std::vector<Value> GroupNormalization(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t groups = call.Whole("num_groups", 1);
  const int64_t channels = call.Size(x, 1);
  if (!call.Check(groups >= 1 && channels % groups == 0, "the channels are no equal groups"))
    return {};
  const auto per_channel = [&](size_t input) {
    const Value given = call.In(input);
    if (call.Size(given, 0) == channels) return given;
    const Value wide = call.Broadcast(call.Reshape(given, {groups, 1}),
                                      {groups, channels / groups});
    return call.Reshape(wide, {channels});
  };
  return call.Aten("aten.group_norm.default", {{"input", call.Ref(x)},
                                               {"num_groups", groups},
                                               {"weight", call.Ref(per_channel(1))},
                                               {"bias", call.Ref(per_channel(2))},
                                               {"eps", call.Real("epsilon", 1e-5)}});
}

std::vector<Value> RmsNormalization(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t axis = call.Axis(call.Whole("axis", -1), call.Rank(x));
  const Integers sizes = call.SizesOf(x);
  return call.Aten("aten.rms_norm.default",
                   {{"input", call.Ref(x)},
                    {"normalized_shape", Integers(sizes.begin() + axis, sizes.end())},
                    {"weight", call.Ref(call.Broadcast(
                                   call.In(1), Integers(sizes.begin() + axis, sizes.end())))},
                    {"eps", call.Real("epsilon", 1e-5)}});
}

/// x / (bias + alpha / size · Σ x²)^beta, summed over the channels around.
std::vector<Value> LocalResponseNormalization(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t size = call.Whole("size", 1);
  if (!call.Check(size >= 1 && size < 4096 && call.Rank(x) >= 2, "LRN of this size")) return {};
  const Value squares = call.g.Map("a * a", {call.Wide(x)});
  const Value padded = call.g.Add(graph::Pad{1, (size - 1) / 2, size / 2, 0, 0}, {squares});
  const Value windows = call.g.Add(graph::Window{1, size, 1, 1}, {padded});
  const Value sum = call.g.Reduce(Combine::kSum, windows, {2});
  const Value y = call.g.Map(
      fmt::format("a / pow({} + b * {}, {})", call.Real("bias", 1),
                  call.Real("alpha", 1e-4) / static_cast<double>(size), call.Real("beta", 0.75)),
      {call.Wide(x), sum});
  return {call.g.Cast(y, call.TypeOf(x))};
}

}  // namespace atunner::importers::onnx
