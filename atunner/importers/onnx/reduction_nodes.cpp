// Reductions, scans, softmax and losses.
#include <fmt/format.h>

#include <numeric>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Combine;
using graph::Value;

Integers AllAxes(int64_t rank) {
  Integers axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// log(sum(exp(x))) without an overflow; an infinite largest element is the result.
Value LogSumExp(OnnxCall& call, Value x, const Integers& axes, bool keep) {
  const Value largest = call.g.Reduce(Combine::kMax, x, axes, true);
  const Value shift = call.g.Map("select(isinf(a), 0, a)", {largest});
  const Value sum = call.g.Reduce(Combine::kSum, call.g.Map("exp(a - b)", {x, shift}), axes, true);
  const Value y = call.g.Map("log(a) + b", {sum, shift});
  if (keep) return y;
  Integers sizes;
  const Integers kept = call.SizesOf(y);
  for (size_t i = 0; i < kept.size(); ++i) {
    if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) sizes.push_back(kept[i]);
  }
  return call.Reshape(y, sizes);
}

Value Reduced(OnnxCall& call, std::string_view kind, Value x, const Integers& axes, bool keep) {
  const auto sum = [&](std::string_view before, std::string_view behind) {
    const Value parts = before.empty() ? x : call.g.Map(before, {x});
    const Value y = call.g.Reduce(Combine::kSum, parts, axes, keep);
    return behind.empty() ? y : call.g.Map(behind, {y});
  };
  if (kind == "sum") return sum("", "");
  if (kind == "l1") return sum("abs(a)", "");
  if (kind == "sum_square") return sum("a * a", "");
  if (kind == "log_sum") return sum("", "log(a)");
  if (kind == "l2") return sum("a * a", IsFloat(call.TypeOf(x)) ? "sqrt(a)" : "");
  if (kind == "log_sum_exp") return LogSumExp(call, x, axes, keep);
  if (kind == "mean") return call.g.Reduce(Combine::kMean, x, axes, keep);
  if (kind == "prod") return call.g.Reduce(Combine::kProd, x, axes, keep);
  const bool is_bool = call.TypeOf(x) == DType::kBool;
  if (kind == "max") return call.g.Reduce(is_bool ? Combine::kAny : Combine::kMax, x, axes, keep);
  return call.g.Reduce(is_bool ? Combine::kAll : Combine::kMin, x, axes, keep);
}

/// Before operator set 13 all axes from `axis` on were one.
Value SoftmaxOf(OnnxCall& call, std::string_view text, Value x) {
  const bool flattened = call.opset < 13;
  const int64_t axis = call.Axis(call.Whole("axis", flattened ? 1 : -1), call.Rank(x));
  const DType type = call.TypeOf(x);
  if (!flattened) return call.Library(text, type, {x}, {{"axis", axis}});
  const Integers sizes = call.SizesOf(x);
  Integers rows{1, 1};
  for (size_t i = 0; i < sizes.size(); ++i)
    rows[static_cast<int64_t>(i) < axis ? 0 : 1] *= sizes[i];
  return call.Reshape(call.Library(text, type, {call.Reshape(x, rows)}, {{"axis", int64_t{1}}}),
                      sizes);
}

/// 1 at the first largest element along the axis, 0 elsewhere.
Value Hardmax(OnnxCall& call, Value x, const Integers& axes) {
  const Integers sizes = call.SizesOf(x);
  Integers rows;
  for (size_t i = 0; i + axes.size() < sizes.size(); ++i) rows.push_back(sizes[i]);
  rows.push_back(1);
  for (const int64_t axis : axes) rows.back() *= sizes[static_cast<size_t>(axis)];
  const bool many = axes.size() > 1;
  const Value flat = many ? call.Reshape(x, rows) : x;
  const int64_t axis = many ? static_cast<int64_t>(rows.size()) - 1 : axes[0];
  const Value place = call.g.Reduce(Combine::kArgMax, flat, {axis}, true);
  const Value y = call.g.Map(fmt::format("a == index({})", axis - call.Rank(flat)), {place},
                             call.ShapeOf(flat));
  return call.Reshape(call.g.Cast(y, call.TypeOf(x)), sizes);
}

}  // namespace

std::vector<Value> Reduction(OnnxCall& call, std::string_view text) {
  const Value x = call.In(0);
  const DType type = call.TypeOf(x);
  Integers axes = call.ListOf(1, "axes");
  if (axes.empty() && call.Whole("noop_with_empty_axes", 0) != 0) return {x};
  for (int64_t& axis : axes) axis = call.Axis(axis, call.Rank(x));
  if (axes.empty()) axes = AllAxes(call.Rank(x));
  const bool scalar = call.Rank(x) == 0;
  const bool keep = !scalar && call.Whole("keepdims", 1) != 0;
  Value y = call.g.Cast(scalar ? call.Reshape(x, {1}) : x,
                        IsFloat(type) ? graph::ArithmeticType(type) : type);
  y = Reduced(call, text, y, scalar ? Integers{0} : axes, keep);
  return {call.g.Cast(y, type)};
}

std::vector<Value> ArgExtreme(OnnxCall& call, std::string_view text) {
  const Value x = call.In(0);
  const int64_t axis = call.Axis(call.Whole("axis", 0), call.Rank(x));
  const bool keep = call.Whole("keepdims", 1) != 0;
  const Combine combine = text == "max" ? Combine::kArgMax : Combine::kArgMin;
  if (call.Whole("select_last_index", 0) == 0) return {call.g.Reduce(combine, x, {axis}, keep)};
  const Value reversed = call.g.Add(graph::Reverse{axis}, {x});
  const Value from_end = call.g.Reduce(combine, reversed, {axis}, keep);
  return {call.g.Map(fmt::format("{} - a", call.Size(x, axis) - 1), {from_end})};
}

std::vector<Value> Cumulative(OnnxCall& call, std::string_view text) {
  const Value x = call.In(0);
  const int64_t axis = call.Axis(static_cast<int64_t>(call.Number(1)), call.Rank(x));
  const DType type = call.TypeOf(x);
  const graph::Scan scan{text == "sum" ? Combine::kSum : Combine::kProd, axis,
                         call.Whole("exclusive", 0) != 0, call.Whole("reverse", 0) != 0};
  return {call.g.Cast(call.g.Add(scan, {IsFloat(type) ? call.Wide(x) : x}), type)};
}

std::vector<Value> Softmax(OnnxCall& call, std::string_view text) {
  const Value x = call.In(0);
  if (text != "hardmax") return {SoftmaxOf(call, text, x)};
  const bool flattened = call.opset < 13;
  const int64_t axis = call.Axis(call.Whole("axis", flattened ? 1 : -1), call.Rank(x));
  Integers axes{axis};
  for (int64_t i = axis + 1; flattened && i < call.Rank(x); ++i) axes.push_back(i);
  return {Hardmax(call, x, axes)};
}

std::vector<Value> LpNormalization(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t axis = call.Axis(call.Whole("axis", -1), call.Rank(x));
  const char* kind = call.Whole("p", 2) == 1 ? "l1" : "l2";
  const Value norm = Reduced(call, kind, call.Wide(x), {axis}, true);
  const Value y = call.g.Map("select(b == 0, 0, a / b)", {call.Wide(x), norm});
  return {call.g.Cast(y, call.TypeOf(x))};
}

std::vector<Value> MeanVarianceNormalization(OnnxCall& call, std::string_view) {
  const Value x = call.Wide(call.In(0));
  Integers axes = call.List("axes", {0, 2, 3});
  for (int64_t& axis : axes) axis = call.Axis(axis, call.Rank(x));
  const Value centred = call.g.Map("a - b", {x, call.g.Reduce(Combine::kMean, x, axes, true)});
  const Value variance = call.g.Reduce(Combine::kMean, call.g.Map("a * a", {centred}), axes, true);
  const Value y = call.g.Map("a / (sqrt(b) + 1e-9)", {centred, variance});
  return {call.g.Cast(y, call.TypeOf(call.In(0)))};
}

/// The scores' second axis is that of the classes. The losses' mean is weighted by the classes'
/// weights, and elements of the class `ignore_index` do not count.
std::vector<Value> ClassLoss(OnnxCall& call, std::string_view text) {
  const Value scores = call.In(0);
  const Value target = call.g.Cast(call.In(1), DType::kInt64);
  const Value logs = text == "nll" ? scores
                                   : call.Library("log_softmax", call.TypeOf(scores), {scores},
                                                  {{"axis", int64_t{1}}});
  const int64_t classes = call.Size(scores, 1);
  Integers with_class = call.SizesOf(target);
  with_class.insert(with_class.begin() + std::min<int64_t>(1, call.Rank(target)), 1);
  const int64_t from_end = 1 - call.Rank(scores);
  const Value places = call.Reshape(target, with_class);
  const Value hit = call.g.Map(fmt::format("select(a == index({}), b, 0)", from_end),
                               {places, logs});
  const bool ignores = call.HasAttribute("ignore_index");
  const std::string counted = ignores ? fmt::format("a != {}", call.Whole("ignore_index", 0))
                                      : "a == a";
  Value weight = call.g.Cast(call.g.Map(counted, {target}), call.TypeOf(scores));
  if (call.Has(2)) {
    const Value inside = call.g.Map(fmt::format("maximum(0, minimum({}, a))", classes - 1),
                                    {target});
    weight = call.g.Map("a * b", {weight, call.g.Add(graph::Gather{0, 0}, {call.In(2), inside})});
  }
  const Value loss = call.g.Map("-a * b", {call.g.Reduce(Combine::kSum, hit, {1}), weight});
  const std::string reduction = call.Text("reduction", "mean");
  if (reduction == "none") return {loss, logs};
  const Integers all = AllAxes(call.Rank(loss));
  const Value sum = call.g.Reduce(Combine::kSum, loss, all);
  if (reduction == "sum") return {sum, logs};
  return {call.g.Map("a / b", {sum, call.g.Reduce(Combine::kSum, weight, all)}), logs};
}

}  // namespace atunner::importers::onnx
