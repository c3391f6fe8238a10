// Convolutions and pooling, with a geometry of their own for each axis.
#include "atunner/graph/library/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Combine;
using graph::Value;
using graph::WindowAxes;

/// An image without a batch gets one for the computation.
struct Image {
  Value x;
  bool has_batch = true;
};
Image ImageOf(AtenCall& call, std::string_view name, size_t n) {
  const Value x = call.Tensor(name);
  Integers sizes = call.SizesOf(x);
  if (sizes.size() == n + 2) return {x};
  if (!call.Check(sizes.size() == n + 1,
                  fmt::format("an image of rank {} with {} spatial axes", sizes.size(), n)))
    return {x};
  sizes.insert(sizes.begin(), 1);
  return {call.Reshape(x, sizes), false};
}
Value AsGiven(AtenCall& call, const Image& image, Value y) {
  if (image.has_batch || !call.g.ok()) return y;
  Integers sizes = call.SizesOf(y);
  sizes.erase(sizes.begin());
  return call.Reshape(y, sizes);
}

Value WithBias(AtenCall& call, Value y, size_t n) {
  if (!call.Has("bias") || !call.g.ok()) return y;
  Integers sizes(n + 1, 1);
  const Value bias = call.Tensor("bias");
  sizes[0] = call.Size(bias, 0);
  return call.g.Map("a + b", {y, call.Reshape(bias, sizes)});
}

}  // namespace

/// The windows' geometry, with "same" and "valid" as paddings too.
WindowAxes ConvolutionAxes(AtenCall& call, size_t n, Value w) {
  WindowAxes axes(n);
  const Integers stride = call.PerAxis("stride", n, 1);
  const Integers dilation = call.PerAxis("dilation", n, 1);
  const bool padded = call.Has("padding");
  const std::string mode = padded && call.HoldsText("padding") ? call.Text("padding") : "";
  const Integers padding = mode.empty() ? call.PerAxis("padding", n, 0) : Integers(n, 0);
  for (size_t i = 0; i < n; ++i) {
    axes[i] = {stride[i], padding[i], padding[i], dilation[i]};
    if (mode != "same") continue;
    const int64_t all = dilation[i] * (call.Size(w, static_cast<int64_t>(i) + 2) - 1);
    axes[i].low = all / 2;
    axes[i].high = all - all / 2;
  }
  return axes;
}

namespace {

std::vector<Value> Convolved(AtenCall& call, size_t n, bool transposed) {
  const Image image = ImageOf(call, "input", n);
  const Value w = call.Tensor("weight");
  if (!call.Check(n >= 1 && n <= 3 && call.ShapeOf(w).size() == n + 2,
                  fmt::format("a convolution with {} spatial axes", n), "1, 2 or 3 are computed"))
    return {};
  const WindowAxes axes = ConvolutionAxes(call, n, w);
  const int64_t groups = call.Whole("groups");
  const Integers added = transposed ? call.PerAxis("output_padding", n, 0) : Integers();
  const Value y = transposed ? graph::ConvolveTransposed(call.g, image.x, w, groups, axes, added)
                             : graph::Convolve(call.g, image.x, w, groups, axes);
  return {AsGiven(call, image, WithBias(call, y, n))};
}

size_t NumberIn(std::string_view text) { return static_cast<size_t>(text[0] - '0'); }

}  // namespace

/// The geometry of pooling. `ceil_mode` adds a window that begins inside of the image or of the
/// padding in front, and may end behind the padding.
WindowAxes PoolingAxes(AtenCall& call, Value x, size_t n, const Integers& size) {
  const Integers stride = call.Has("stride") && !call.Wholes("stride").empty()
                              ? call.PerAxis("stride", n, 1)
                              : size;
  const Integers padding = call.PerAxis("padding", n, 0);
  const Integers dilation = call.Has("dilation") ? call.PerAxis("dilation", n, 1) : Integers(n, 1);
  WindowAxes axes;
  for (size_t i = 0; i < n; ++i) {
    axes.push_back({stride[i], padding[i], padding[i], dilation[i]});
    if (!call.Check(stride[i] >= 1 && size[i] >= 1, "the stride or size of a window is below 1"))
      return WindowAxes(n);
    if (!call.Flag("ceil_mode")) continue;
    const int64_t extent = call.Size(x, static_cast<int64_t>(i) + 2);
    const int64_t room = extent + 2 * padding[i] - dilation[i] * (size[i] - 1) - 1;
    int64_t last = (room + stride[i] - 1) / stride[i];
    if (last * stride[i] >= extent + padding[i]) --last;
    axes[i].high += std::max<int64_t>(last * stride[i] - room, 0);
  }
  return axes;
}

namespace {

Integers InnerAxes(size_t n) {
  Integers axes;
  for (size_t i = 0; i < n; ++i) axes.push_back(static_cast<int64_t>(3 + 2 * i));
  return axes;
}

/// The elements of each window that count for the mean: those of the image, and with
/// `count_include_pad` those of the padding, but none behind it.
Value WindowCounts(AtenCall& call, Value x, size_t n, const Integers& size, const WindowAxes& axes,
                   bool with_padding) {
  const Integers image = call.SizesOf(x);
  Integers counted(n + 2, 1);
  std::copy(image.begin() + 2, image.end(), counted.begin() + 2);
  Value ones = call.Filled(counted, call.TypeOf(x), 1);
  WindowAxes rest = axes;
  if (with_padding) {
    for (size_t i = 0; i < n; ++i) {
      const int64_t padding = axes[i].low;
      ones = call.g.Add(graph::Pad{static_cast<int64_t>(i) + 2, padding, padding, 0, 1}, {ones});
      rest[i].low = 0;
      rest[i].high -= padding;
    }
  }
  return call.g.Reduce(Combine::kSum, graph::Windows(call.g, ones, 2, size, rest, 0), InnerAxes(n));
}

}  // namespace

std::vector<Value> Convolution(AtenCall& call, std::string_view) {
  const size_t rank = call.ShapeOf(call.Tensor("weight")).size();
  return Convolved(call, rank < 2 ? 0 : rank - 2, call.Flag("transposed"));
}

std::vector<Value> ConvolutionOfAxes(AtenCall& call, std::string_view text) {
  return Convolved(call, NumberIn(text), false);
}

std::vector<Value> TransposedConvolution(AtenCall& call, std::string_view text) {
  return Convolved(call, NumberIn(text), true);
}

Value LargestOfWindows(graph::GraphBuilder& g, Value x, const Integers& size,
                       const WindowAxes& axes) {
  const Value windows = graph::Windows(g, x, 2, size, axes,
                                       -std::numeric_limits<double>::infinity());
  return g.Add(graph::Reduce{Combine::kMax, InnerAxes(size.size()), false, /*first=*/true},
               {windows});
}

std::vector<Value> MaxPool(AtenCall& call, std::string_view text) {
  const size_t n = NumberIn(text);
  const Image image = ImageOf(call, "self", n);
  const Integers size = call.PerAxis("kernel_size", n, 1);
  const WindowAxes axes = PoolingAxes(call, image.x, n, size);
  return {AsGiven(call, image, LargestOfWindows(call.g, image.x, size, axes))};
}

std::vector<Value> AvgPool(AtenCall& call, std::string_view text) {
  const size_t n = NumberIn(text);
  const Image image = ImageOf(call, "self", n);
  const DType type = call.TypeOf(image.x);
  const Integers size = call.PerAxis("kernel_size", n, 1);
  const WindowAxes axes = PoolingAxes(call, image.x, n, size);
  const Value x = call.Wide(image.x);
  const Value windows = graph::Windows(call.g, x, 2, size, axes, 0);
  const bool with_padding = call.Flag("count_include_pad");
  const bool padded = std::ranges::any_of(
      axes, [](const graph::WindowAxis& axis) { return axis.low != 0 || axis.high != 0; });
  const bool beyond = std::ranges::any_of(
      axes, [](const graph::WindowAxis& axis) { return axis.low != axis.high; });
  Value y;
  if (call.Has("divisor_override")) {
    const Value sum = call.g.Reduce(Combine::kSum, windows, InnerAxes(n));
    y = call.g.Map(fmt::format("a / {}", call.Whole("divisor_override")), {sum});
  } else if (!padded || (with_padding && !beyond)) {
    y = call.g.Reduce(Combine::kMean, windows, InnerAxes(n));
  } else {
    const Value sum = call.g.Reduce(Combine::kSum, windows, InnerAxes(n));
    y = call.g.Map("a / b", {sum, WindowCounts(call, x, n, size, axes, with_padding)});
  }
  return {AsGiven(call, image, call.g.Cast(y, type))};
}

std::vector<Value> AdaptivePool(AtenCall& call, std::string_view text) {
  const size_t n = NumberIn(text);
  const Image image = ImageOf(call, "self", n);
  Integers out = call.PerAxis("output_size", n, 1);
  Integers sizes = call.SizesOf(image.x);
  if (!call.g.ok()) return {};
  const std::string_view kind = text.substr(2);
  const DType type = call.TypeOf(image.x);
  const bool even = std::ranges::all_of(out, [&](int64_t o) { return o == out[0]; });
  if (even && out[0] >= 1)
    return {AsGiven(call, image,
                    call.Library(fmt::format("adaptive_{}_pool", kind), type, {image.x},
                                 {{"output", out[0]}}))};
  // Different numbers of cells along the axes: equal cells are windows without an overlap.
  Integers split(sizes.begin(), sizes.begin() + 2);
  for (size_t i = 0; i < n; ++i) {
    if (!call.Check(out[i] >= 1 && sizes[i + 2] % out[i] == 0,
                    "adaptive pooling into unequal cells, of other numbers along each axis"))
      return {};
    split.insert(split.end(), {out[i], sizes[i + 2] / out[i]});
  }
  const Combine combine = kind == "avg" ? Combine::kMean : Combine::kMax;
  const Value y = call.g.Reduce(combine, call.Wide(call.Reshape(image.x, split)), InnerAxes(n));
  return {AsGiven(call, image, call.g.Cast(y, type))};
}

}  // namespace atunner::importers
