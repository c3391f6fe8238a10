// Convolutions and pooling: padding, windows, then a contraction or a reduction.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "atunner/graph/library/library.h"
#include "atunner/graph/library/windows.h"

namespace atunner::graph {
namespace {

/// The windows of a request, equal for all n spatial axes.
WindowAxes GeometryOf(const Call& call, size_t n, bool dilates) {
  const int64_t padding = call.Whole("padding");
  const int64_t dilation = dilates ? call.Whole("dilation") : 1;
  return WindowAxes(n, {call.Whole("stride"), padding, padding, dilation});
}

std::vector<int64_t> SpatialOf(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (size_t i = 2; i < shape.size(); ++i) sizes.push_back(shape[i].factor());
  return sizes;
}

bool IsConvolution(Call& call, const Shape& x, const Shape& w) {
  const bool ranks = x.size() >= 3 && x.size() <= 5 && w.size() == x.size();
  return call.Check(ranks, "an image " + ToString(x) + " with weights " + ToString(w),
                    "N,C,… and K,C,… of one rank from 3 to 5");
}

/// A shape of the request in the order N, C, …, whether the request has channels first or last.
Shape ChannelsFirst(const Call& call, size_t i) {
  Shape shape = call.shape(i);
  if (call.Flag("channels_last") && shape.size() > 2)
    std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}
Value ImageInput(Call& call, const std::string& name, size_t i) {
  const Value given = call.Input(name, call.shape(i));
  if (!call.Flag("channels_last")) return given;
  std::vector<int64_t> order = {0, static_cast<int64_t>(call.shape(i).size()) - 1};
  for (int64_t axis = 1; axis < order[1]; ++axis) order.push_back(axis);
  return call.g.Transpose(given, order);
}
void ImageOutput(Call& call, const std::string& name, Value y) {
  if (call.Flag("channels_last") && call.g.ok()) {
    std::vector<int64_t> order = {0};
    for (size_t axis = 2; axis < call.g.TypeOf(y).rank(); ++axis)
      order.push_back(static_cast<int64_t>(axis));
    order.push_back(1);
    y = call.g.Transpose(y, order);
  }
  call.g.Output(name, y);
}

void BuildConvolution(Call& call) {
  const Shape ws = ChannelsFirst(call, 1);
  if (!IsConvolution(call, ChannelsFirst(call, 0), ws)) return;
  Value x = ImageInput(call, "x", 0);
  const Value w = ImageInput(call, "w", 1);
  const WindowAxes axes = GeometryOf(call, ws.size() - 2, true);
  if (call.Flag("causal")) {
    for (size_t i = 2; i < ws.size(); ++i)
      x = call.g.Add(Pad{static_cast<int64_t>(i), axes[0].dilation * (ws[i].factor() - 1), 0, 0, 0},
                     {x});
    if (!call.Check(axes[0].low == 0, "causal with padding",
                    "the filter decides how much is added"))
      return;
  }
  ImageOutput(call, "y", Convolve(call.g, x, w, call.Whole("groups"), axes));
}

void BuildTransposedConvolution(Call& call) {
  const Shape xs = ChannelsFirst(call, 0);
  const Shape ws = ChannelsFirst(call, 1);  // C, K / groups, …
  if (!IsConvolution(call, xs, ws)) return;
  const size_t n = xs.size() - 2;
  const Value x = ImageInput(call, "x", 0);
  const Value w = ImageInput(call, "w", 1);
  const std::vector<int64_t> added(n, call.Whole("output_padding"));
  ImageOutput(
      call, "y",
      ConvolveTransposed(call.g, x, w, call.Whole("groups"), GeometryOf(call, n, true), added));
}

void Pool(Call& call, Combine op) {
  const Shape xs = call.shape();
  if (!call.Check(xs.size() >= 3 && xs.size() <= 5, "an image of rank " + std::to_string(xs.size()),
                  "N,C,…"))
    return;
  const Value x = call.Wide(call.Input("x", xs));
  const size_t n = xs.size() - 2;
  const WindowAxes geometry = GeometryOf(call, n, op == Combine::kMax);
  const int64_t covered = (call.Whole("size") - 1) * geometry[0].dilation + 1;
  if (!call.Check(geometry[0].low <= covered / 2,
                  fmt::format("padding={} of a window of {}", geometry[0].low, covered),
                  "at most half a window"))
    return;
  const double border = op == Combine::kMax ? -std::numeric_limits<double>::infinity() : 0.0;
  const Value windows = Windows(call.g, x, 2, std::vector<int64_t>(n, call.Whole("size")), geometry,
                                border);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < n; ++i) axes.push_back(static_cast<int64_t>(3 + 2 * i));
  call.Output("y", call.g.Add(Reduce{op, axes, false, op == Combine::kMax}, {windows}));
}

/// Adaptive pooling: one spatial axis of n elements becomes two, as `out` cells. Cell i has the
/// elements from floor(i n / out) to ceil((i + 1) n / out). Shorter cells are filled up with
/// `neutral`.
Value Cells(Call& call, Value x, int64_t axis, int64_t out, double neutral) {
  GraphBuilder& g = call.g;
  if (!g.ok()) return x;
  const Shape shape = g.TypeOf(x).shape;
  const int64_t n = shape[axis].factor();
  Shape split = shape;
  split[axis] = Extent(out);
  if (n % out == 0) {
    split.insert(split.begin() + axis + 1, Extent(n / out));
    return g.Reshape(x, split);
  }
  int64_t longest = 0;
  for (int64_t i = 0; i < out; ++i)
    longest = std::max(longest, ((i + 1) * n + out - 1) / out - i * n / out);
  const Shape table = {Extent(out), Extent(longest)};
  const std::string place = fmt::format("floor_div(index(-2) * {}, {}) + index(-1)", n, out);
  const std::string end = fmt::format("floor_div((index(-2) + 1) * {} + {}, {})", n, out - 1, out);
  const Value inside = g.Map(place + " < " + end, {}, table);
  const Value cells = g.Add(Gather{axis, 0}, {x, g.Map(place, {}, table)});
  Shape seen(shape.size() - static_cast<size_t>(axis) + 1, Extent(1));
  seen[0] = table[0];
  seen[1] = table[1];
  return g.Map("select(b, a, c)",
               {cells, g.Reshape(inside, seen), g.Scalar(g.TypeOf(x).dtype, neutral)});
}

Reduce Pooled(bool largest, std::vector<int64_t> axes, bool keep) {
  return {largest ? Combine::kMax : Combine::kMean, std::move(axes), keep, largest};
}

void BuildAdaptive(Call& call, bool largest) {
  const Shape xs = call.shape();
  if (!call.Check(xs.size() >= 3, "an image of rank " + std::to_string(xs.size()), "N,C,…")) return;
  GraphBuilder& g = call.g;
  const int64_t out = call.Whole("output");
  Value x = call.Wide(call.Input("x", xs));
  std::vector<int64_t> axes;
  if (out == 1) {  // the whole image
    for (size_t i = 2; i < xs.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    return call.Output("y", g.Add(Pooled(largest, axes, true), {x}));
  }
  for (size_t i = 2; i < xs.size(); ++i) {
    const int64_t n = xs[i].factor();
    if (!call.Check(out >= 1 && out <= n, fmt::format("output={} of an extent {}", out, n),
                    "at least 1, at most that"))
      return;
    x = Cells(call, x, 2 + 2 * static_cast<int64_t>(i - 2), out,
              largest ? -std::numeric_limits<double>::infinity() : 0);
    axes.push_back(3 + 2 * static_cast<int64_t>(i - 2));
  }
  const bool even = std::ranges::all_of(SpatialOf(xs), [&](int64_t n) { return n % out == 0; });
  if (largest || even) return call.Output("y", g.Add(Pooled(largest, axes, false), {x}));
  std::string count = "1";  // the number of elements of a cell
  for (size_t i = 2; i < xs.size(); ++i) {
    const int at = static_cast<int>(xs.size() - i);
    count += fmt::format(
        " * (floor_div((index(-{0}) + 1) * {1} + {3}, {2}) - floor_div(index(-{0}) * {1}, {2}))",
        at, xs[i].factor(), out, out - 1);
  }
  const Value sum = g.Reduce(Combine::kSum, x, axes);
  call.Output("y", g.Map(fmt::format("a / cast({}, {})", count, Name(g.TypeOf(sum).dtype)), {sum}));
}

/// Depthwise separable convolution: a filter for each channel, then a product over the channels.
void BuildSeparable(Call& call) {
  const Shape xs = call.shape(0);
  const Shape ws = call.shape(1);  // C · m, 1, R, S
  if (!IsConvolution(call, xs, ws) ||
      !call.Check(ws[1].one(), "a depthwise weight " + ToString(ws), "it is C,1,…"))
    return;
  const Value x = call.Input("x", xs);
  const Value depthwise = call.Input("depthwise", ws);
  const size_t n = xs.size() - 2;
  const Value mixed = Convolve(call.g, x, depthwise, xs[1].factor(), GeometryOf(call, n, true));
  Shape point(xs.size(), Extent(1));
  point[0] = Extent(call.Whole("channels"));
  point[1] = ws[0];
  call.g.Output("y", Convolve(call.g, mixed, call.Input("pointwise", point), 1, WindowAxes(n)));
}

}  // namespace

void AddWindows(std::vector<LibraryOperator>& library) {
  const Attribute stride = {"stride", int64_t{1}, "step of the windows"};
  const Attribute padding = {"padding", int64_t{0}, "elements added on each side"};
  const Attribute dilation = {"dilation", int64_t{1}, "distance between the elements of a window"};
  const Attribute groups = {"groups", int64_t{1}, "number of groups of channels"};
  const Attribute last = {"channels_last", false,
                          "images are N, …, C, and filters K, …, C / groups"};
  const Attribute size = {"size", int64_t{2}, "extent of the windows"};
  const Attribute stride2 = {"stride", int64_t{2}, "step of the windows"};
  library.push_back({"conv",
                     "conv(x[N, C, …], w[K, C / groups, …]) → y",
                     "convolution in 1, 2 or 3 dimensions, channels first",
                     "image and weights: request.shapes 8,64,56,56 128,64,3,3",
                     {stride,
                      padding,
                      dilation,
                      groups,
                      last,
                      {"causal", false, "all padding is added in front"}},
                     BuildConvolution,
                     true,
                     {{1, 2, 5, 4}, {3, 2, 2, 3}}});
  library.push_back({"separable_conv",
                     "separable_conv(x[N, C, …], depthwise[C, 1, …], pointwise[K, C, 1, …]) → y",
                     "a filter for each channel, then a product over the channels",
                     "image and filters: request.shapes 8,64,56,56 64,1,3,3",
                     {stride, padding, dilation, {"channels", int64_t{8}, "K, of the result"}},
                     BuildSeparable,
                     true,
                     {{1, 2, 5, 4}, {2, 1, 2, 3}}});
  library.push_back({"conv_transpose",
                     "conv_transpose(x[N, C, …], w[C, K / groups, …]) → y",
                     "transposed convolution in 1, 2 or 3 dimensions",
                     "image and weights: request.shapes 8,64,28,28 64,32,3,3",
                     {stride,
                      padding,
                      dilation,
                      groups,
                      last,
                      {"output_padding", int64_t{0}, "elements added at the end"}},
                     BuildTransposedConvolution,
                     true,
                     {{1, 2, 3, 4}, {2, 3, 2, 3}}});
  library.push_back({"max_pool",
                     "max_pool(x[N, C, …]) → y",
                     "largest element of each window",
                     "N,C,…: request.shapes 8,64,56,56",
                     {size, stride2, padding, dilation},
                     [](Call& call) { Pool(call, Combine::kMax); },
                     true,
                     {{1, 2, 4, 6}}});
  library.push_back({"avg_pool",
                     "avg_pool(x[N, C, …]) → y",
                     "mean of each window; padding counts as zeros",
                     "N,C,…: request.shapes 8,64,56,56",
                     {size, stride2, padding},
                     [](Call& call) { Pool(call, Combine::kMean); },
                     true,
                     {{1, 2, 4, 6}}});
  library.push_back({"adaptive_avg_pool",
                     "adaptive_avg_pool(x[N, C, …]) → y",
                     "mean of each of a given number of cells",
                     "N,C,…: request.shapes 8,64,56,56",
                     {{"output", int64_t{1}, "cells along each axis"}},
                     [](Call& call) { BuildAdaptive(call, false); },
                     true,
                     {{1, 2, 4, 6}}});
  library.push_back({"adaptive_max_pool",
                     "adaptive_max_pool(x[N, C, …]) → y",
                     "largest element of each of a given number of cells",
                     "N,C,…: request.shapes 8,64,56,56",
                     {{"output", int64_t{1}, "cells along each axis"}},
                     [](Call& call) { BuildAdaptive(call, true); },
                     true,
                     {{1, 2, 4, 6}}});
}

}  // namespace atunner::graph
