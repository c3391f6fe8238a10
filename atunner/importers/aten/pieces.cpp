// Operators that take tensors apart and put them together.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Value;

Value Piece(AtenCall& call, Value x, int64_t axis, int64_t start, int64_t size) {
  return call.g.Add(graph::Slice{axis, start, start + size, 1}, {x});
}

/// Without its axis `axis`, which has one element.
Value Without(AtenCall& call, Value x, int64_t axis) {
  Integers sizes = call.SizesOf(x);
  if (sizes.empty()) return x;
  sizes.erase(sizes.begin() + axis);
  return call.Reshape(x, sizes);
}

std::vector<Value> Pieces(AtenCall& call, Value x, int64_t axis, const Integers& sizes) {
  std::vector<Value> pieces;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    pieces.push_back(Piece(call, x, axis, start, size));
    start += size;
  }
  call.Check(start == call.Size(x, axis), "the pieces are not the whole axis");
  return pieces;
}

/// Pieces of `size` elements, of which the last may be shorter.
std::vector<Value> EqualPieces(AtenCall& call, Value x, int64_t axis, int64_t size) {
  constexpr int64_t kMostPieces = 100'000;
  if (!call.Check(size >= 1, "the pieces are empty") ||
      !call.Check(call.Size(x, axis) / size < kMostPieces, "there are too many pieces"))
    return {};
  Integers sizes;
  for (int64_t left = call.Size(x, axis); left > 0; left -= size)
    sizes.push_back(std::min(left, size));
  return Pieces(call, x, axis, sizes);
}

/// PyTorch concatenates tensors of different types in their common type.
std::vector<Value> InResultType(AtenCall& call, std::vector<Value> parts) {
  if (parts.empty()) return parts;
  const DType type = call.ResultType(call.TypeOf(parts[0]));
  for (Value& part : parts) part = call.g.Cast(part, type);
  return parts;
}

}  // namespace

std::vector<Value> Concatenate(AtenCall& call, std::string_view) {
  const std::vector<Value> parts = InResultType(call, call.Tensors("tensors"));
  if (!call.Check(!parts.empty(), "nothing is concatenated")) return {};
  const int64_t axis = call.Axis("dim", parts[0]);
  return {parts.size() == 1 ? parts[0] : call.g.Add(graph::Concat{axis}, parts)};
}

std::vector<Value> Stack(AtenCall& call, std::string_view) {
  std::vector<Value> parts = InResultType(call, call.Tensors("tensors"));
  if (!call.Check(!parts.empty(), "nothing is stacked")) return {};
  Integers sizes = call.SizesOf(parts[0]);
  const auto rank = static_cast<int64_t>(sizes.size());
  int64_t axis = call.Whole("dim");
  if (!call.Check(axis >= -rank - 1 && axis <= rank, fmt::format("the axis {} is too far", axis)))
    return {};
  axis = axis < 0 ? axis + rank + 1 : axis;
  sizes.insert(sizes.begin() + axis, 1);
  for (Value& part : parts) part = call.Reshape(part, sizes);
  return {parts.size() == 1 ? parts[0] : call.g.Add(graph::Concat{axis}, parts)};
}

std::vector<Value> SliceAxis(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  const int64_t extent = call.Size(x, axis);
  // Python's rule: negative ends count from behind, and ends beyond the axis are its ends.
  const auto end_of = [&](std::string_view name, int64_t fallback) {
    int64_t end = call.Has(name) ? call.Whole(name) : fallback;
    if (end < 0) end += extent;
    return std::clamp<int64_t>(end, 0, extent);
  };
  const int64_t start = end_of("start", 0);
  const int64_t stop = end_of("end", extent);
  const int64_t step = call.Whole("step");
  if (!call.Check(start < stop && step >= 1, "the slice is empty")) return {};
  if (start == 0 && stop == extent && step == 1) return {x};
  return {call.g.Add(graph::Slice{axis, start, stop, step}, {x})};
}

std::vector<Value> Narrow(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  const int64_t start = call.Whole("start");
  return {
      Piece(call, x, axis, start < 0 ? start + call.Size(x, axis) : start, call.Whole("length"))};
}

std::vector<Value> Select(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  const int64_t index = call.Whole("index");
  const int64_t start = index < 0 ? index + call.Size(x, axis) : index;
  return {Without(call, Piece(call, x, axis, start, 1), axis)};
}

std::vector<Value> Split(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  return EqualPieces(call, x, call.Axis("dim", x), call.Whole("split_size"));
}

std::vector<Value> SplitWithSizes(AtenCall& call, std::string_view text) {
  const Value x = call.Tensor("self");
  return Pieces(call, x, call.Axis("dim", x), call.Wholes(text));
}

std::vector<Value> Chunk(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  const int64_t chunks = call.Whole("chunks");
  if (!call.Check(chunks >= 1, "there are no chunks")) return {};
  return EqualPieces(call, x, axis, (call.Size(x, axis) + chunks - 1) / chunks);
}

std::vector<Value> Unbind(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  std::vector<Value> parts = EqualPieces(call, x, axis, 1);
  for (Value& part : parts) part = Without(call, part, axis);
  return parts;
}

/// Elements that leave an axis at its end come back at its beginning. Without axes the tensor is
/// rolled as one row.
std::vector<Value> Roll(AtenCall& call, std::string_view) {
  const Value given = call.Tensor("self");
  const Integers shifts = call.Wholes("shifts");
  const Integers sizes = call.SizesOf(given);
  const bool flat = call.Wholes("dims").empty();
  Value x = flat ? call.Reshape(given, {CountOf(sizes)}) : given;
  const Integers axes = flat ? Integers{0} : call.Axes("dims", x);
  if (!call.Check(shifts.size() == axes.size(), "there is not one shift for each axis")) return {};
  for (size_t i = 0; i < axes.size() && call.g.ok(); ++i) {
    const int64_t extent = call.Size(x, axes[i]);
    const int64_t back = (shifts[i] % extent + extent) % extent;
    if (back == 0) continue;
    x = call.g.Add(graph::Concat{axes[i]}, {Piece(call, x, axes[i], extent - back, back),
                                            Piece(call, x, axes[i], 0, extent - back)});
  }
  return {flat ? call.Reshape(x, sizes) : x};
}

/// Windows along an axis; their elements are the last axis.
std::vector<Value> Unfold(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dimension", x);
  const int64_t size = call.Whole("size");
  const int64_t step = call.Whole("step");
  if (!call.Check(call.Rank(x) >= 1 && size >= 1 && step >= 1 && size <= call.Size(x, axis),
                  "windows that do not fit the axis"))
    return {};
  const Value windows = call.g.Add(graph::Window{axis, size, step, 1}, {x});
  Integers order;
  for (int64_t i = 0; i <= call.Rank(x); ++i) {
    if (i != axis + 1) order.push_back(i);
  }
  order.push_back(axis + 1);
  return {call.g.Transpose(windows, order)};
}

}  // namespace atunner::importers
