// Reductions over any axes by the library's reductions over one, and scans.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Combine;
using graph::Value;

bool Contains(const Integers& axes, int64_t axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

/// x with the axes in `axes` as one last axis, and the sizes that the result has.
struct LastAxis {
  Value x;
  Integers kept;
};
LastAxis WithLastAxis(AtenCall& call, Value x, const Integers& axes, bool keep) {
  const Integers sizes = call.SizesOf(x);
  Integers order;
  Integers merged;
  LastAxis made;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool reduced = Contains(axes, static_cast<int64_t>(i));
    if (!reduced) {
      order.push_back(static_cast<int64_t>(i));
      merged.push_back(sizes[i]);
    }
    if (!reduced || keep) made.kept.push_back(reduced ? 1 : sizes[i]);
  }
  int64_t count = 1;
  for (const int64_t axis : axes) {
    order.push_back(axis);
    count *= sizes[static_cast<size_t>(axis)];
  }
  merged.push_back(count);
  const bool moves = !std::ranges::is_sorted(order);
  made.x = call.Reshape(moves ? call.g.Transpose(x, order) : x, merged);
  return made;
}

/// The reductions that a node of the graph computes over any axes at once.
std::optional<Combine> NodeOf(std::string_view name) {
  if (name == "sum") return Combine::kSum;
  if (name == "mean") return Combine::kMean;
  if (name == "amax") return Combine::kMax;
  if (name == "amin") return Combine::kMin;
  return std::nullopt;
}

Value ReducedOver(AtenCall& call, std::string_view name, Value x, const Integers& axes, bool keep,
                  Attributes attributes) {
  if (const auto combine = NodeOf(name)) {
    const DType type = call.TypeOf(x);
    const Value y = call.g.Reduce(*combine, call.Wide(x), axes, keep);
    return IsFloat(type) ? call.g.Cast(y, type) : y;
  }
  if (axes.size() == 1) {
    attributes.emplace("axis", axes[0]);
    attributes.emplace("keep", keep);
    return call.Library(name, call.TypeOf(x), {x}, attributes);
  }
  const LastAxis last = WithLastAxis(call, x, axes, keep);
  const Value y = call.Library(name, call.TypeOf(x), {last.x}, attributes);
  return call.Reshape(y, last.kept);
}

/// Sums and products are of the result's type, if that is another float.
Value Operand(AtenCall& call) {
  const Value x = call.Tensor("self");
  const DType asked = call.Has("dtype") ? call.Type("dtype") : call.TypeOf(x);
  return IsFloat(asked) ? call.g.Cast(x, asked) : x;
}

Value OfAxes(AtenCall& call, std::string_view name, Value x, const Attributes& attributes = {}) {
  const bool keep = call.Has("keepdim") && call.Flag("keepdim");
  const Integers axes = call.Axes("dim", x);
  if (!call.g.ok()) return {};
  // A scalar is a row of one element.
  const Value y = axes.empty() ? call.Reshape(ReducedOver(call, name, call.Reshape(x, {1}), {0},
                                                          false, attributes),
                                              {})
                               : ReducedOver(call, name, x, axes, keep, attributes);
  return call.g.Cast(y, call.ResultType(call.TypeOf(y)));
}

Attributes Correction(AtenCall& call) {
  // `correction` is a number or None, which is 1; `unbiased` is the older spelling of it.
  if (call.Has("correction")) return {{"correction", call.Whole("correction")}};
  const bool biased = call.Has("unbiased") && !call.Flag("unbiased");
  return {{"correction", biased ? int64_t{0} : int64_t{1}}};
}

}  // namespace

std::vector<Value> Reduction(AtenCall& call, std::string_view text) {
  return {OfAxes(call, text, Operand(call))};
}

std::vector<Value> Extreme(AtenCall& call, std::string_view text) {
  const Value x = call.Tensor("self");
  const std::string name(text);
  if (call.ShapeOf(x).empty()) return {x, call.Filled({}, DType::kInt64, 0)};
  const int64_t axis = call.Axis("dim", x);
  const bool keep = call.Flag("keepdim");
  const Combine combine = text == "max" ? Combine::kMax : Combine::kMin;
  const Combine place = text == "max" ? Combine::kArgMax : Combine::kArgMin;
  return {call.g.Reduce(combine, x, {axis}, keep), call.g.Reduce(place, x, {axis}, keep)};
}

std::vector<Value> Variance(AtenCall& call, std::string_view text) {
  return {OfAxes(call, text, call.Tensor("self"), Correction(call))};
}

std::vector<Value> VarianceAndMean(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  return {OfAxes(call, "var", x, Correction(call)), OfAxes(call, "mean", x)};
}

std::vector<Value> PNorm(AtenCall& call, std::string_view text) {
  const double p = call.Has(text) ? call.Real(text) : 2;
  const Attributes attributes = {{"p", p}};
  const Value x = Operand(call);
  return {p == 0 ? OfAxes(call, "count_nonzero", x) : OfAxes(call, "norm", x, attributes)};
}

std::vector<Value> AlongAxis(AtenCall& call, std::string_view text) {
  Value x = Operand(call);
  // Truth values and integers are added up as PyTorch says, in int64 if nothing is stated.
  if (!IsFloat(call.TypeOf(x))) x = call.g.Cast(x, call.ResultType(DType::kInt64));
  if (call.ShapeOf(x).empty()) {
    const Value y = call.Library(text, call.TypeOf(x), {call.Reshape(x, {1})});
    return {call.Reshape(y, {})};
  }
  const Value y = call.Library(text, call.TypeOf(x), {x}, {{"axis", call.Axis("dim", x)}});
  return {call.g.Cast(y, call.ResultType(call.TypeOf(y)))};
}

std::vector<Value> SafeSoftmax(AtenCall& call, std::string_view) {
  const std::vector<Value> weights = AlongAxis(call, "softmax");
  const Value x = Operand(call);
  if (weights.empty() || call.ShapeOf(x).empty()) return weights;
  const Value top = call.g.Reduce(graph::Combine::kMax, x, {call.Axis("dim", x)}, true);
  return {call.g.Map("select(b == (-inf), 0, a)",
                     {weights[0], call.g.Cast(top, call.TypeOf(weights[0]))})};
}

}  // namespace atunner::importers
