// Losses of whole batches.
#include <fmt/format.h>

#include <optional>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Combine;
using graph::Value;

Integers AllAxes(const AtenCall& call, Value x) {
  Integers axes;
  for (size_t i = 0; i < call.ShapeOf(x).size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

/// Which class each label is, and the classes' weights.
struct LabelledClasses {
  Value hit;       ///< bool, in the shape of the log probabilities; false for `ignore_index`
  Value weight;    ///< of each class, in a shape that broadcasts
  size_t classes;  ///< the axis of classes: the second one, or the only one
};

std::optional<LabelledClasses> ClassesOf(AtenCall& call, Value log_probabilities) {
  const Value labels = call.g.Cast(call.Tensor("target"), DType::kInt64);
  const Integers sizes = call.SizesOf(log_probabilities);
  if (!call.Check(!sizes.empty(), "a loss of a scalar")) return std::nullopt;
  const size_t classes = sizes.size() == 1 ? 0 : 1;
  Integers shape(sizes.size(), 1);
  shape[classes] = sizes[classes];
  Integers one = sizes;
  one[classes] = 1;
  const Value label = call.Reshape(labels, one);
  const auto axis = static_cast<int>(sizes.size() - classes);
  const int64_t ignored = call.Whole("ignore_index");
  const Value hit = call.g.Map(fmt::format("a == index(-{}) & a != {}", axis, ignored), {label},
                               graph::Shape(sizes.begin(), sizes.end()));
  const DType type = call.TypeOf(log_probabilities);
  const Value weight = call.Has("weight")
                           ? call.Reshape(call.g.Cast(call.Tensor("weight"), type), shape)
                           : call.Filled(shape, type, 1);
  return LabelledClasses{hit, weight, classes};
}

/// -weight[label] · log_probabilities[…, label] of each row; rows of `ignore_index` count nothing.
std::vector<Value> LossOfLabels(AtenCall& call, Value log_probabilities) {
  const auto labelled = ClassesOf(call, log_probabilities);
  if (!labelled) return {};
  const auto& [hit, weight, classes] = *labelled;
  const Integers along = {static_cast<int64_t>(classes)};
  const Value losses = call.g.Reduce(
      Combine::kSum, call.g.Map("select(a, -b * c, 0)", {hit, log_probabilities, weight}), along);
  const int64_t reduction = call.Whole("reduction");
  if (reduction == 0) return {losses};
  const Value sum = call.g.Reduce(Combine::kSum, losses, AllAxes(call, losses));
  const Value weights = call.g.Reduce(Combine::kSum, call.g.Map("select(a, b, 0)", {hit, weight}),
                                      AllAxes(call, hit));
  return {reduction == 1 ? call.g.Map("a / b", {sum, weights}) : sum, weights};
}

}  // namespace

Value Reduced(AtenCall& call, Value x, int64_t reduction) {
  if (reduction == 0) return x;
  const Combine combine = reduction == 1 ? Combine::kMean : Combine::kSum;
  return call.g.Reduce(combine, x, AllAxes(call, x));
}

std::vector<Value> PairLoss(AtenCall& call, std::string_view text) {
  const std::vector<Value> losses = Expression(call, text);
  return {Reduced(call, losses[0], call.Whole("reduction"))};
}

std::vector<Value> NllLoss(AtenCall& call, std::string_view) {
  return LossOfLabels(call, call.Tensor("self"));
}

/// -weight of the label's class, times the loss's gradient, and divided by the weights' sum where
/// the loss is a mean.
std::vector<Value> NllLossBackward(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const auto labelled = ClassesOf(call, x);
  if (!labelled) return {};
  Value dy = call.g.Cast(call.Tensor("grad_output"), call.TypeOf(x));
  const int64_t reduction = call.Whole("reduction");
  if (reduction == 0) {
    Integers one = call.SizesOf(x);
    one[labelled->classes] = 1;
    dy = call.Reshape(dy, one);
  }
  if (reduction == 1)
    dy = call.g.Map("a / b", {dy, call.g.Cast(call.Tensor("total_weight"), call.TypeOf(x))});
  return {call.g.Map("select(a, -b * c, 0)", {labelled->hit, labelled->weight, dy})};
}

std::vector<Value> MseLossBackward(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  double count = 1;
  for (const int64_t size : call.SizesOf(x)) count *= static_cast<double>(size);
  const double scale = call.Whole("reduction") == 1 ? 2 / count : 2;
  return Expression(call, fmt::format("grad_output * (self - target) * {}", scale));
}

std::vector<Value> CrossEntropy(AtenCall& call, std::string_view) {
  const Value logits = call.Tensor("self");
  if (!call.Check(call.Real("label_smoothing") == 0, "cross entropy with label smoothing") ||
      !call.Check(!IsFloat(call.TypeOf(call.Tensor("target"))),
                  "cross entropy with probabilities as targets"))
    return {};
  const int64_t classes = call.ShapeOf(logits).size() == 1 ? 0 : 1;
  const Value logs = call.Library("log_softmax", call.TypeOf(logits), {logits},
                                  {{"axis", classes}});
  std::vector<Value> results = LossOfLabels(call, logs);
  results.resize(1);
  return results;
}

}  // namespace atunner::importers
