// Operators that read and write at indices.
#include <fmt/format.h>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

/// Negative indices count from the end of the axis.
Value FromStart(OnnxCall& call, Value indices, int64_t extent) {
  return call.g.Map(fmt::format("select(a < 0, a + {}, a)", extent),
                    {call.g.Cast(indices, DType::kInt64)});
}

/// The last axis of `indices` holds indices of the `sizes.size()` axes; the result is the index of
/// these axes as one, without the last axis.
Value LinearIndex(OnnxCall& call, Value indices, const Integers& sizes) {
  const int64_t last = call.Rank(indices) - 1;
  Integers outer = call.SizesOf(indices);
  outer.pop_back();
  Value linear;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Value column = call.Reshape(call.SliceOf(indices, last, at, at + 1), outer);
    const Value index = FromStart(call, column, sizes[i]);
    linear = i == 0 ? index : call.g.Map(fmt::format("a * {} + b", sizes[i]), {linear, index});
  }
  return linear;
}

/// How a scatter combines; nullopt after an error.
std::optional<graph::Combine> CombineOf(OnnxCall& call) {
  const std::string reduction = call.Text("reduction", "none");
  if (reduction == "none") return graph::Combine::kSet;
  if (reduction == "add") return graph::Combine::kSum;
  if (reduction == "max") return graph::Combine::kMax;
  if (reduction == "min") return graph::Combine::kMin;
  call.Unsupported("a scatter that combines by '" + reduction + "'");
  return std::nullopt;
}

}  // namespace

std::vector<Value> Gather(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t axis = call.Axis(call.Whole("axis", 0), call.Rank(x));
  return {call.g.Add(graph::Gather{axis, 0}, {x, FromStart(call, call.In(1), call.Size(x, axis))})};
}

std::vector<Value> GatherElements(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t axis = call.Axis(call.Whole("axis", 0), call.Rank(x));
  const Value index = FromStart(call, call.In(1), call.Size(x, axis));
  return call.Aten("aten.gather.default",
                   {{"self", call.Ref(x)}, {"dim", axis}, {"index", call.Ref(index)}});
}

std::vector<Value> GatherND(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Value indices = call.In(1);
  const int64_t batch = call.Whole("batch_dims", 0);
  const Integers sizes = call.SizesOf(x);
  const int64_t depth = call.Size(indices, call.Rank(indices) - 1);
  if (!call.Check(
          batch >= 0 && depth >= 1 && batch < call.Rank(indices) && batch + depth <= call.Rank(x),
          "the indices do not fit the tensor"))
    return {};
  const auto first = sizes.begin() + batch;
  Integers flat(sizes.begin(), first);
  flat.push_back(CountOf({first, first + depth}));
  flat.insert(flat.end(), first + depth, sizes.end());
  const Value places = LinearIndex(call, indices, {first, first + depth});
  return {call.g.Add(graph::Gather{batch, batch}, {call.Reshape(x, flat), places})};
}

/// Each update has an index along one axis; the other indices are its own. As a scatter into the
/// elements in one row.
std::vector<Value> ScatterElements(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Value updates = call.In(2);
  const Integers sizes = call.SizesOf(x);
  const int64_t rank = call.Rank(x);
  const int64_t axis = call.Axis(call.Whole("axis", 0), rank);
  const auto combine = CombineOf(call);
  if (!combine || !call.Check(call.Rank(updates) == rank, "the updates have another rank"))
    return {};
  std::string place;
  int64_t stride = 1;
  for (int64_t i = rank - 1; i >= 0; --i) {
    place = fmt::format("{}{} * {}", place.empty() ? "" : place + " + ",
                        i == axis ? "a" : fmt::format("index({})", i - rank), stride);
    stride *= sizes[static_cast<size_t>(i)];
  }
  const Value index = FromStart(call, call.In(1), call.Size(x, axis));
  const Integers given = call.SizesOf(updates);
  const int64_t count = CountOf(given);
  const Value places = call.Reshape(call.g.Map(place, {index}), {count});
  const Value y = call.g.Add(graph::Scatter{*combine, 0, 0},
                             {call.Reshape(x, {stride}), places, call.Reshape(updates, {count})});
  return {call.Reshape(y, sizes)};
}

std::vector<Value> ScatterND(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Value indices = call.In(1);
  const Integers sizes = call.SizesOf(x);
  const int64_t depth = call.Size(indices, call.Rank(indices) - 1);
  const auto combine = CombineOf(call);
  if (!combine ||
      !call.Check(depth >= 1 && depth <= call.Rank(x), "the indices do not fit the tensor"))
    return {};
  Integers flat{CountOf({sizes.begin(), sizes.begin() + depth})};
  flat.insert(flat.end(), sizes.begin() + depth, sizes.end());
  const Value places = LinearIndex(call, indices, {sizes.begin(), sizes.begin() + depth});
  const Value y = call.g.Add(graph::Scatter{*combine, 0, 0},
                             {call.Reshape(x, flat), places, call.In(2)});
  return {call.Reshape(y, sizes)};
}

/// The first elements of each sequence in reverse order; `sequence_lens` says how many.
std::vector<Value> ReverseSequence(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t batch = call.Whole("batch_axis", 1);
  const int64_t time = call.Whole("time_axis", 0);
  if (!call.Check(call.Rank(x) >= 2 && batch + time == 1 && batch * time == 0,
                  "the first two axes have to be time and batch"))
    return {};
  const Integers sizes = call.SizesOf(x);
  // The place along time, at each [time, batch] or [batch, time].
  const Value lengths = call.Reshape(call.g.Cast(call.In(1), DType::kInt64),
                                     batch == 0 ? Integers{sizes[0], 1} : Integers{1, sizes[1]});
  const std::string at = fmt::format("index({})", time - 2);
  const Value places = call.g.Map(fmt::format("select({0} < a, a - 1 - {0}, {0})", at), {lengths},
                                  graph::Shape{sizes[0], sizes[1]});
  const std::string linear = time == 0 ? fmt::format("a * {} + index(-1)", sizes[1])
                                       : fmt::format("index(-2) * {} + a", sizes[1]);
  Integers flat{sizes[0] * sizes[1]};
  flat.insert(flat.end(), sizes.begin() + 2, sizes.end());
  const Value index = call.Reshape(call.g.Map(linear, {places}), {flat[0]});
  return {call.Reshape(call.g.Add(graph::Gather{0, 0}, {call.Reshape(x, flat), index}), sizes)};
}

/// Slices where the condition, a constant, is true.
std::vector<Value> Compress(OnnxCall& call, std::string_view) {
  Value x = call.In(0);
  const auto condition = call.Known(1);
  if (!condition) return {call.Unsupported("the condition is computed")};
  int64_t axis = 0;
  if (call.HasAttribute("axis"))
    axis = call.Axis(call.Whole("axis", 0), call.Rank(x));
  else
    x = call.Reshape(x, {CountOf(call.SizesOf(x))});
  Integers kept;
  for (size_t i = 0; i < condition->cells.size(); ++i) {
    if (condition->cells[i].whole != 0) kept.push_back(static_cast<int64_t>(i));
  }
  if (kept.empty()) return call.NoElements(call.TypeOf(x));
  const Value places = call.Constant(DType::kInt64, {std::ssize(kept)}, kept);
  return {call.g.Add(graph::Gather{axis, 0}, {x, places})};
}

/// The number of elements is an input from operator set 10 on, an attribute before.
std::vector<Value> TopK(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Integers k = call.opset < 10 ? Integers{call.Whole("k", 0)} : call.Wholes(1);
  if (!call.Check(k.size() == 1, "the number of elements is not one number")) return {};
  return call.Aten("aten.topk.default", {{"self", call.Ref(x)},
                                         {"k", k[0]},
                                         {"dim", call.Axis(call.Whole("axis", -1), call.Rank(x))},
                                         {"largest", call.Whole("largest", 1) != 0},
                                         {"sorted", true}});
}

}  // namespace atunner::importers::onnx
