// Operators that only move elements.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

constexpr int64_t kMostElements = int64_t{1} << 40;

/// Axes counted from 0, of a tensor of this rank.
Integers AxesOf(OnnxCall& call, Integers axes, int64_t rank) {
  for (int64_t& axis : axes) axis = call.Axis(axis, rank);
  return axes;
}

/// The elements before, at, and behind one side of an axis, for padding that repeats elements.
Value Mirrored(OnnxCall& call, Value x, int64_t axis, int64_t low, int64_t high,
               const std::string& mode) {
  const int64_t extent = call.Size(x, axis);
  const int64_t most = mode == "edge" ? kMostElements : mode == "reflect" ? extent - 1 : extent;
  if (!call.Check(std::max(low, high) <= most, "the padding is larger than the axis")) return x;
  const auto piece = [&](int64_t start, int64_t stop) {
    return call.SliceOf(x, axis, start, stop);
  };
  const auto repeated = [&](Value edge, int64_t count) {
    Integers sizes = call.SizesOf(x);
    sizes[static_cast<size_t>(axis)] = count;
    return call.Broadcast(edge, sizes);
  };
  const auto reversed = [&](Value part) { return call.g.Add(graph::Reverse{axis}, {part}); };
  std::vector<Value> parts;
  if (low > 0)
    parts.push_back(mode == "edge"      ? repeated(piece(0, 1), low)
                    : mode == "reflect" ? reversed(piece(1, low + 1))
                                        : piece(extent - low, extent));
  parts.push_back(x);
  if (high > 0)
    parts.push_back(mode == "edge"      ? repeated(piece(extent - 1, extent), high)
                    : mode == "reflect" ? reversed(piece(extent - high - 1, extent - 1))
                                        : piece(0, high));
  return parts.size() == 1 ? x : call.g.Add(graph::Concat{axis}, parts);
}

/// Where one axis is cut: Python's rules, as ONNX states them.
struct Cut {
  int64_t start = 0, stop = 0, step = 1;
};
/// Nothing if no element is left.
std::optional<Value> CutAxis(OnnxCall& call, Value x, int64_t axis, Cut cut) {
  const int64_t extent = call.Size(x, axis);
  if (!call.Check(cut.step != 0, "the step of a slice is 0")) return x;
  const bool back = cut.step < 0;
  const auto end = [&](int64_t at) {
    if (at < 0) at = std::max(at, -kMostElements) + extent;
    return back ? std::clamp<int64_t>(at, -1, extent - 1) : std::clamp<int64_t>(at, 0, extent);
  };
  const int64_t start = end(cut.start);
  const int64_t stop = end(cut.stop);
  const int64_t step = std::clamp(cut.step, -kMostElements, kMostElements);
  if (back) {
    if (start <= stop) return std::nullopt;
    // Elements start, start - s, … are those of the reversed axis from extent - 1 - start on.
    const Value reversed = call.g.Add(graph::Reverse{axis}, {x});
    return call.SliceOf(reversed, axis, extent - 1 - start, extent - 1 - stop, -step);
  }
  if (start >= stop) return std::nullopt;
  if (start == 0 && stop == extent && step == 1) return x;
  return call.SliceOf(x, axis, start, stop, step);
}

}  // namespace

std::vector<Value> Reshape(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  Integers sizes = call.ListOf(1, "shape");
  const Integers given = call.SizesOf(x);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && call.Whole("allowzero", 0) == 0 && i < given.size()) sizes[i] = given[i];
  }
  const auto open = std::ranges::find(sizes, -1);
  if (open != sizes.end()) {
    *open = 1;
    const int64_t others = CountOf(sizes);
    *open = others == 0 ? 1 : CountOf(given) / others;
  }
  return {call.Reshape(x, sizes)};
}

std::vector<Value> Flatten(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Integers sizes = call.SizesOf(x);
  int64_t axis = call.Whole("axis", 1);
  if (axis < 0) axis += call.Rank(x);
  if (!call.Check(axis >= 0 && axis <= call.Rank(x), "the axis is not one of the tensor"))
    return {};
  const Integers front(sizes.begin(), sizes.begin() + axis);
  const Integers back(sizes.begin() + axis, sizes.end());
  return {call.Reshape(x, {CountOf(front), CountOf(back)})};
}

std::vector<Value> Squeeze(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Integers axes = AxesOf(call, call.ListOf(1, "axes"), call.Rank(x));
  const bool all = !call.Has(1) && !call.HasAttribute("axes");
  const Integers sizes = call.SizesOf(x);
  Integers kept;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool named = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
    if (!(all ? sizes[i] == 1 : named)) kept.push_back(sizes[i]);
  }
  return {call.Reshape(x, kept)};
}

std::vector<Value> Unsqueeze(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Integers wanted = call.ListOf(1, "axes");
  const int64_t rank = call.Rank(x) + static_cast<int64_t>(wanted.size());
  Integers axes = AxesOf(call, wanted, rank);
  std::ranges::sort(axes);
  Integers sizes = call.SizesOf(x);
  for (const int64_t axis : axes) {
    if (!call.Check(axis <= static_cast<int64_t>(sizes.size()), "an axis is named twice"))
      return {};
    sizes.insert(sizes.begin() + axis, 1);
  }
  return {call.Reshape(x, sizes)};
}

std::vector<Value> Transpose(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  Integers reversed(static_cast<size_t>(call.Rank(x)));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {call.Rank(x) == 0 ? x : call.g.Transpose(x, call.List("perm", reversed))};
}

/// Broadcasts in both directions: a size of 1 keeps the tensor's own.
std::vector<Value> Expand(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  Integers sizes = call.Wholes(1);
  const Integers given = call.SizesOf(x);
  if (sizes.size() < given.size()) sizes.insert(sizes.begin(), given.size() - sizes.size(), 1);
  for (size_t i = 0; i < given.size(); ++i) {
    int64_t& size = sizes[sizes.size() - given.size() + i];
    if (size == 1) size = given[i];
  }
  return {call.Broadcast(x, sizes)};
}

std::vector<Value> Tile(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  return call.Aten("aten.repeat.default", {{"self", call.Ref(x)}, {"repeats", call.Wholes(1)}});
}

std::vector<Value> DepthToSpace(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t b = call.Whole("blocksize", 1);
  const Integers s = call.SizesOf(x);
  if (!call.Check(s.size() == 4 && b >= 1 && b < 4096 && s[1] % (b * b) == 0,
                  "DepthToSpace of these sizes"))
    return {};
  const int64_t channels = s[1] / (b * b);
  const bool columns_first = call.Text("mode", "DCR") == "DCR";
  const Value parts = call.Reshape(x, columns_first ? Integers{s[0], b, b, channels, s[2], s[3]}
                                                    : Integers{s[0], channels, b, b, s[2], s[3]});
  const Value moved = call.g.Transpose(
      parts, columns_first ? Integers{0, 3, 4, 1, 5, 2} : Integers{0, 1, 4, 2, 5, 3});
  return {call.Reshape(moved, {s[0], channels, s[2] * b, s[3] * b})};
}

std::vector<Value> SpaceToDepth(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t b = call.Whole("blocksize", 1);
  const Integers s = call.SizesOf(x);
  if (!call.Check(s.size() == 4 && b >= 1 && s[2] % b == 0 && s[3] % b == 0,
                  "SpaceToDepth of these sizes"))
    return {};
  const Value parts = call.Reshape(x, {s[0], s[1], s[2] / b, b, s[3] / b, b});
  const Value moved = call.g.Transpose(parts, {0, 3, 5, 1, 2, 4});
  return {call.Reshape(moved, {s[0], s[1] * b * b, s[2] / b, s[3] / b})};
}

std::vector<Value> ShapeOf(OnnxCall& call, std::string_view) {
  const Integers sizes = call.SizesOf(call.In(0));
  const auto rank = static_cast<int64_t>(sizes.size());
  const auto end = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = end(call.Whole("start", 0));
  const int64_t stop = end(call.Whole("end", rank));
  if (start >= stop) return call.NoElements(DType::kInt64);
  return {
      call.Constant(DType::kInt64, {stop - start}, {sizes.begin() + start, sizes.begin() + stop})};
}

std::vector<Value> SizeOfAll(OnnxCall& call, std::string_view) {
  return {call.Constant(DType::kInt64, {}, {CountOf(call.SizesOf(call.In(0)))})};
}

std::vector<Value> Concat(OnnxCall& call, std::string_view) {
  std::vector<Value> parts;
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (!call.IsEmpty(i)) parts.push_back(call.In(i));
  }
  if (parts.empty()) return call.NoElements(DType::kInt64);
  const int64_t axis = call.Axis(call.Whole("axis", 1), call.Rank(parts[0]));
  return {parts.size() == 1 ? parts[0] : call.g.Add(graph::Concat{axis}, parts)};
}

std::vector<Value> Split(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const int64_t axis = call.Axis(call.Whole("axis", 0), call.Rank(x));
  const int64_t extent = call.Size(x, axis);
  Integers sizes = call.ListOf(1, "split");
  if (sizes.empty()) {
    const auto count = call.Whole("num_outputs", static_cast<int64_t>(call.outputs()));
    if (!call.Check(count >= 1 && count <= extent, "the axis is split into too many pieces"))
      return {};
    const int64_t each = (extent + count - 1) / count;
    for (int64_t left = extent; left > 0; left -= each) sizes.push_back(std::min(left, each));
  }
  std::vector<Value> pieces;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    if (!call.Check(size >= 1 && size <= extent - start, "a piece is empty or beyond the axis"))
      return {};
    pieces.push_back(call.SliceOf(x, axis, start, start + size));
    start += size;
  }
  return pieces;
}

std::vector<Value> Slice(OnnxCall& call, std::string_view) {
  Value x = call.In(0);
  const bool old = call.opset < 10;
  const Integers starts = old ? call.List("starts") : call.Wholes(1);
  const Integers stops = old ? call.List("ends") : call.Wholes(2);
  Integers axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (old) axes = call.List("axes", axes);
  if (!old && call.Has(3)) axes = call.Wholes(3);
  const Integers steps = !old && call.Has(4) ? call.Wholes(4) : Integers(starts.size(), 1);
  if (!call.Check(stops.size() == starts.size() && axes.size() == starts.size() &&
                      steps.size() == starts.size(),
                  "a slice needs as many ends, axes and steps as starts"))
    return {};
  for (size_t i = 0; i < starts.size() && call.g.ok(); ++i) {
    const auto cut = CutAxis(call, x, call.Axis(axes[i], call.Rank(x)),
                             {starts[i], stops[i], steps[i]});
    if (!cut) return call.NoElements(call.TypeOf(x));
    x = *cut;
  }
  return {x};
}

std::vector<Value> Pad(OnnxCall& call, std::string_view) {
  Value x = call.In(0);
  const Integers pads = call.opset < 11 ? call.List("pads", call.List("paddings")) : call.Wholes(1);
  double value = call.Real("value", 0);
  if (call.opset >= 11 && call.Has(2)) value = call.Number(2);
  Integers axes(static_cast<size_t>(call.Rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  if (call.Has(3)) axes = AxesOf(call, call.Wholes(3), call.Rank(x));
  if (!call.Check(pads.size() == 2 * axes.size(), "there are not two paddings for each axis"))
    return {};
  const std::string mode = call.Text("mode", "constant");
  for (size_t i = 0; i < axes.size() && call.g.ok(); ++i) {
    const int64_t low = pads[i];
    const int64_t high = pads[i + axes.size()];
    const int64_t extent = call.Size(x, axes[i]);
    if (low < 0 || high < 0) {  // negative paddings cut elements off
      const int64_t stop = extent - std::max<int64_t>(-high, 0);
      const auto cut = CutAxis(call, x, axes[i], {std::max<int64_t>(-low, 0), stop, 1});
      if (!call.Check(cut.has_value(), "the padding leaves no elements")) return {};
      x = *cut;
    }
    const int64_t before = std::max<int64_t>(low, 0);
    const int64_t behind = std::max<int64_t>(high, 0);
    if (before == 0 && behind == 0) continue;
    x = mode == "constant" ? call.g.Add(graph::Pad{axes[i], before, behind, 0, value}, {x})
                           : Mirrored(call, x, axes[i], before, behind, mode);
  }
  return {x};
}

/// Each axis gets its extent of `shape`, cut or filled with 0 equally on both sides; an odd element
/// is cut or added behind.
std::vector<Value> CenterCropPad(OnnxCall& call, std::string_view) {
  Value x = call.In(0);
  const Integers wanted = call.Wholes(1);
  Integers axes(static_cast<size_t>(call.Rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  axes = AxesOf(call, call.List("axes", axes), call.Rank(x));
  if (!call.Check(wanted.size() == axes.size(), "there is not one extent for each axis")) return {};
  for (size_t i = 0; i < axes.size() && call.g.ok(); ++i) {
    const int64_t extent = call.Size(x, axes[i]);
    if (!call.Check(wanted[i] >= 1 && wanted[i] <= kMostElements,
                    "an axis without elements, or too long"))
      return {};
    const int64_t low = std::abs(wanted[i] - extent) / 2;
    if (wanted[i] < extent)
      x = call.SliceOf(x, axes[i], low, low + wanted[i]);
    else if (wanted[i] > extent)
      x = call.g.Add(graph::Pad{axes[i], low, wanted[i] - extent - low, 0, 0}, {x});
  }
  return {x};
}

std::vector<Value> Trilu(OnnxCall& call, std::string_view) {
  const int64_t diagonal = call.Has(1) ? static_cast<int64_t>(call.Number(1)) : 0;
  const char* target = call.Whole("upper", 1) != 0 ? "aten.triu.default" : "aten.tril.default";
  return call.Aten(target, {{"self", call.Ref(call.In(0))}, {"diagonal", diagonal}});
}

}  // namespace atunner::importers::onnx
