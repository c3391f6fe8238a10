// Operators that only move elements: shapes, orders of axes, broadcasts.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Value;

}  // namespace

std::vector<Value> View(AtenCall& call, std::string_view text) {
  const Value x = call.Tensor("self");
  Integers sizes = call.Wholes(text.empty() ? "size" : text);
  const auto open = std::ranges::find(sizes, -1);
  if (open != sizes.end()) {
    *open = 1;
    const int64_t others = CountOf(sizes);
    *open = others == 0 ? 1 : CountOf(call.SizesOf(x)) / others;
  }
  return {call.Reshape(x, sizes)};
}

std::vector<Value> Flatten(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t first = call.Axis("start_dim", x);
  const int64_t last = call.Axis("end_dim", x);
  Integers sizes = call.SizesOf(x);
  if (sizes.empty()) return {call.Reshape(x, {1})};
  if (!call.Check(first <= last, "start_dim is behind end_dim")) return {};
  for (int64_t axis = first + 1; axis <= last; ++axis)
    sizes[static_cast<size_t>(first)] *= sizes[static_cast<size_t>(axis)];
  sizes.erase(sizes.begin() + first + 1, sizes.begin() + last + 1);
  return {call.Reshape(x, sizes)};
}

std::vector<Value> Unflatten(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  Integers inner = call.Wholes("sizes");
  const auto open = std::ranges::find(inner, -1);
  if (open != inner.end()) {
    *open = 1;
    *open = call.Size(x, axis) / std::max<int64_t>(CountOf(inner), 1);
  }
  Integers sizes = call.SizesOf(x);
  if (sizes.empty()) return {call.Fail("a scalar has no axis to divide")};
  sizes.erase(sizes.begin() + axis);
  sizes.insert(sizes.begin() + axis, inner.begin(), inner.end());
  return {call.Reshape(x, sizes)};
}

std::vector<Value> Squeeze(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const Integers axes = call.Axes("dim", x);
  const Integers sizes = call.SizesOf(x);
  Integers kept;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool named = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
    if (!named || sizes[i] != 1) kept.push_back(sizes[i]);
  }
  return {call.Reshape(x, kept)};
}

std::vector<Value> Unsqueeze(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  Integers sizes = call.SizesOf(x);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t axis = call.Whole("dim");
  if (!call.Check(axis >= -rank - 1 && axis <= rank, fmt::format("the axis {} is too far", axis)))
    return {};
  sizes.insert(sizes.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
  return {call.Reshape(x, sizes)};
}

std::vector<Value> Permute(AtenCall& call, std::string_view) {
  return {call.g.Transpose(call.Tensor("self"), call.Wholes("dims"))};
}

std::vector<Value> TransposeAxes(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const auto first = static_cast<size_t>(call.Axis("dim0", x));
  const auto second = static_cast<size_t>(call.Axis("dim1", x));
  Integers order(call.ShapeOf(x).size());
  if (order.empty()) return {x};
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[first], order[second]);
  return {call.g.Transpose(x, order)};
}

std::vector<Value> MatrixTranspose(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  Integers order(call.ShapeOf(x).size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() < 2) return {x};
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return {call.g.Transpose(x, order)};
}

std::vector<Value> Expand(AtenCall& call, std::string_view text) {
  const Value x = call.Tensor("self");
  Integers sizes = call.Wholes(text.empty() ? "size" : text);
  const Integers given = call.SizesOf(x);
  if (!call.Check(sizes.size() >= given.size(), "there are fewer sizes than axes")) return {};
  const size_t fresh = sizes.size() - given.size();
  for (size_t i = fresh; i < sizes.size(); ++i) {
    if (sizes[i] == -1) sizes[i] = given[i - fresh];
  }
  return {call.Broadcast(x, sizes)};
}

/// Each axis becomes two, [copies, size], by a broadcast, and these become one again.
std::vector<Value> Repeat(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const Integers repeats = call.Wholes("repeats");
  Integers given = call.SizesOf(x);
  if (!call.Check(repeats.size() >= given.size(), "there are fewer repeats than axes")) return {};
  given.insert(given.begin(), repeats.size() - given.size(), 1);
  Integers before;
  Integers wide;
  Integers merged;
  for (size_t i = 0; i < repeats.size(); ++i) {
    before.insert(before.end(), {1, given[i]});
    wide.insert(wide.end(), {repeats[i], given[i]});
    merged.push_back(CountOf({repeats[i], given[i]}));
  }
  return {call.Reshape(call.Broadcast(call.Reshape(x, before), wide), merged)};
}

std::vector<Value> Flip(AtenCall& call, std::string_view) {
  Value x = call.Tensor("self");
  if (call.Wholes("dims").empty()) return {x};
  for (const int64_t axis : call.Axes("dims", x)) x = call.g.Add(graph::Reverse{axis}, {x});
  return {x};
}

/// Pairs of counts, the last axis first. Negative counts cut elements off.
std::vector<Value> ConstantPad(AtenCall& call, std::string_view) {
  Value x = call.Tensor("self");
  if (call.Has("mode") &&
      !call.Check(call.Text("mode") == "constant", "padding of the mode " + call.Text("mode")))
    return {};
  const Integers counts = call.Wholes("pad");
  const double value = call.Has("value") ? call.Real("value") : 0;
  const auto rank = static_cast<int64_t>(call.ShapeOf(x).size());
  for (size_t i = 0; i + 1 < counts.size(); i += 2) {
    const int64_t axis = rank - 1 - static_cast<int64_t>(i / 2);
    const int64_t low = counts[i];
    const int64_t high = counts[i + 1];
    if (low < 0 || high < 0)
      x = call.g.Add(graph::Slice{axis, std::max<int64_t>(-low, 0),
                                  call.Size(x, axis) + std::min<int64_t>(high, 0), 1},
                     {x});
    if (low > 0 || high > 0)
      x = call.g.Add(
          graph::Pad{axis, std::max<int64_t>(low, 0), std::max<int64_t>(high, 0), 0, value}, {x});
  }
  return {x};
}

std::vector<Value> Triangle(AtenCall& call, std::string_view text) {
  const Value x = call.Tensor("self");
  const std::string body = fmt::format("select(index(-1) - index(-2) {} {}, a, {})",
                                       text == "tril" ? "<=" : ">=", call.Whole("diagonal"),
                                       call.TypeOf(x) == DType::kBool ? "false" : "0");
  return {call.g.Map(body, {x})};
}

}  // namespace atunner::importers
