// Convolutions and pooling: padding, windows, then a contraction or a reduction.
#include <fmt/format.h>

#include <limits>

#include "atunner/graph/library.h"

namespace atunner::graph {
namespace {

/// How windows lie along every spatial axis.
struct Geometry {
  int64_t stride, padding, dilation;
};
Geometry GeometryOf(const Call& call, bool dilates) {
  return {call.Whole("stride"), call.Whole("padding"), dilates ? call.Whole("dilation") : 1};
}

/// Axes from `first` on padded with `value` and cut into windows: each axis becomes two.
Value Windows(Call& call, Value x, int64_t first, const std::vector<int64_t>& sizes, Geometry geometry, double value) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = first + static_cast<int64_t>(i);
    if (geometry.padding != 0) x = call.g.Add(Pad{axis, geometry.padding, geometry.padding, 0, value}, {x});
  }
  for (size_t i = 0; i < sizes.size(); ++i)
    x = call.g.Add(Window{first + 2 * static_cast<int64_t>(i), sizes[i], geometry.stride, geometry.dilation}, {x});
  return x;
}

/// Letters of n axes, from `first` on.
std::string Letters(char first, size_t n) {
  std::string letters;
  for (size_t i = 0; i < n; ++i) letters += static_cast<char>(first + static_cast<char>(i));
  return letters;
}

bool SplitsIntoGroups(Call& call, const Extent& a, const Extent& b, int64_t groups) {
  const bool divides = groups > 0 && a.factor() % groups == 0 && b.factor() % groups == 0;
  return call.Check(divides, fmt::format("groups={} of {} and {} channels", groups, a.ToString(), b.ToString()),
                    "the groups must divide both");
}

std::vector<int64_t> SpatialOf(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (size_t i = 2; i < shape.size(); ++i) sizes.push_back(shape[i].factor());
  return sizes;
}

/// y[n, k, p…] = Σ x[n, c, p·stride + r·dilation - padding …] · w[k, c, r…], channels first, in groups.
Value Convolve(Call& call, Value x, Value w, int64_t groups, Geometry geometry) {
  GraphBuilder& g = call.g;
  const Shape xs = g.TypeOf(x).shape;
  const Shape ws = g.TypeOf(w).shape;
  const size_t n = xs.size() - 2;
  const bool fits = xs[1] == ws[1] * Extent(groups);
  if (!SplitsIntoGroups(call, xs[1], ws[0], groups) ||
      !call.Check(fits, "weights " + ToString(ws) + " for an input " + ToString(xs), "weight is K, C / groups, …"))
    return x;
  Shape split = {xs[0], Extent(groups), ws[1]};
  split.insert(split.end(), xs.begin() + 2, xs.end());
  Shape weights = {Extent(groups), Extent(ws[0].factor() / groups)};
  weights.insert(weights.end(), ws.begin() + 1, ws.end());
  const Value windows = Windows(call, g.Reshape(x, split), 3, SpatialOf(ws), geometry, 0);
  std::string left = "ngc";
  for (size_t i = 0; i < n; ++i)
    left += Letters(static_cast<char>('p' + i), 1) + Letters(static_cast<char>('u' + i), 1);
  const Value y =
      g.Contract(left + ",gkc" + Letters('u', n) + "->ngk" + Letters('p', n), windows, g.Reshape(w, weights));
  Shape merged = {xs[0], ws[0]};
  const Shape computed = g.TypeOf(y).shape;
  if (!g.ok()) return y;
  merged.insert(merged.end(), computed.begin() + 3, computed.end());
  return g.Reshape(y, merged);
}

bool IsConvolution(Call& call, const Shape& x, const Shape& w) {
  const bool ranks = x.size() >= 3 && x.size() <= 5 && w.size() == x.size();
  return call.Check(ranks, "an image " + ToString(x) + " with weights " + ToString(w),
                    "N,C,… and K,C,… of one rank from 3 to 5");
}

void BuildConvolution(Call& call) {
  if (!IsConvolution(call, call.shape(0), call.shape(1))) return;
  const Value x = call.Input("x", call.shape(0));
  const Value w = call.Input("w", call.shape(1));
  call.g.Output("y", Convolve(call, x, w, call.Whole("groups"), GeometryOf(call, true)));
}

/// The gradient of a convolution by its input: elements are spread out by the stride, and the filter runs backwards.
void BuildTransposedConvolution(Call& call) {
  const Shape xs = call.shape(0);
  const Shape ws = call.shape(1);  // C, K / groups, …
  const int64_t groups = call.Whole("groups");
  if (!IsConvolution(call, xs, ws)) return;
  if (!call.Check(xs[1] == ws[0], "weights " + ToString(ws) + " for an input " + ToString(xs),
                  "weight is C, K / groups, …") ||
      !SplitsIntoGroups(call, xs[1], ws[0], groups))
    return;
  GraphBuilder& g = call.g;
  const Geometry geometry = GeometryOf(call, true);
  Value x = call.Input("x", xs);
  Value w = call.Input("w", ws);
  for (size_t i = 2; i < xs.size(); ++i) {
    const int64_t edge = geometry.dilation * (ws[i].factor() - 1) - geometry.padding;
    if (!call.Check(edge >= 0 && geometry.stride > 0, "more padding than filter",
                    "padding is at most dilation · (filter - 1)"))
      return;
    x = g.Add(Pad{static_cast<int64_t>(i), edge, edge + call.Whole("output_padding"), geometry.stride - 1, 0}, {x});
    w = g.Add(Reverse{static_cast<int64_t>(i)}, {w});
  }
  // [C, K/g, …] as [g, C/g, K/g, …], channels swapped, merged to [K, C/g, …].
  Shape split = {Extent(groups), Extent(ws[0].factor() / groups)};
  split.insert(split.end(), ws.begin() + 1, ws.end());
  std::vector<int64_t> order = {0, 2, 1};
  for (size_t i = 3; i < split.size(); ++i) order.push_back(static_cast<int64_t>(i));
  Shape merged = {ws[1] * Extent(groups), Extent(ws[0].factor() / groups)};
  merged.insert(merged.end(), ws.begin() + 2, ws.end());
  w = g.Reshape(g.Transpose(g.Reshape(w, split), order), merged);
  g.Output("y", Convolve(call, x, w, groups, {1, 0, geometry.dilation}));
}

void Pool(Call& call, Combine op) {
  const Shape xs = call.shape();
  if (!call.Check(xs.size() >= 3 && xs.size() <= 5, "an image of rank " + std::to_string(xs.size()), "N,C,…")) return;
  const Value x = call.Wide(call.Input("x", xs));
  const size_t n = xs.size() - 2;
  const double border = op == Combine::kMax ? -std::numeric_limits<double>::infinity() : 0.0;
  const Value windows =
      Windows(call, x, 2, std::vector<int64_t>(n, call.Whole("size")), GeometryOf(call, op == Combine::kMax), border);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < n; ++i) axes.push_back(static_cast<int64_t>(3 + 2 * i));
  call.Output("y", call.g.Reduce(op, windows, axes));
}

/// Cells of equal size: the output's extent must divide the input's.
void BuildAdaptiveAverage(Call& call) {
  const Shape xs = call.shape();
  if (!call.Check(xs.size() >= 3, "an image of rank " + std::to_string(xs.size()), "N,C,…")) return;
  const int64_t out = call.Whole("output");
  Value x = call.Wide(call.Input("x", xs));
  Shape split = {xs[0], xs[1]};
  std::vector<int64_t> axes;
  for (size_t i = 2; i < xs.size(); ++i) {
    const auto cell = out > 0 ? xs[i].Divided(Extent(out)) : std::nullopt;
    if (!call.Check(cell.has_value(), fmt::format("output={} of an extent {}", out, xs[i].ToString()),
                    "it must divide every extent"))
      return;
    split.emplace_back(out);
    split.push_back(*cell);
    axes.push_back(static_cast<int64_t>(split.size()) - 1);
  }
  call.Output("y", call.g.Reduce(Combine::kMean, call.g.Reshape(x, split), axes));
}

}  // namespace

void AddWindows(std::vector<LibraryOperator>& library) {
  const Attribute stride = {"stride", int64_t{1}, "step of the windows"};
  const Attribute padding = {"padding", int64_t{0}, "elements added on each side"};
  const Attribute dilation = {"dilation", int64_t{1}, "distance of a window's elements"};
  const Attribute groups = {"groups", int64_t{1}, "channels that do not mix"};
  const Attribute size = {"size", int64_t{2}, "extent of the windows"};
  const Attribute stride2 = {"stride", int64_t{2}, "step of the windows"};
  library.push_back({"conv",
                     "conv(x[N, C, …], w[K, C / groups, …]) → y",
                     "convolution in 1, 2 or 3 dimensions, channels first",
                     "image and weights: --input-shape 8,64,56,56 128,64,3,3",
                     {stride, padding, dilation, groups},
                     BuildConvolution,
                     true,
                     {{1, 2, 5, 4}, {3, 2, 2, 3}}});
  library.push_back({"conv_transpose",
                     "conv_transpose(x[N, C, …], w[C, K / groups, …]) → y",
                     "transposed convolution in 1, 2 or 3 dimensions",
                     "image and weights: --input-shape 8,64,28,28 64,32,3,3",
                     {stride, padding, dilation, groups, {"output_padding", int64_t{0}, "elements added at the end"}},
                     BuildTransposedConvolution,
                     true,
                     {{1, 2, 3, 4}, {2, 3, 2, 3}}});
  library.push_back({"max_pool",
                     "max_pool(x[N, C, …]) → y",
                     "largest element of each window",
                     "N,C,…: --input-shape 8,64,56,56",
                     {size, stride2, padding, dilation},
                     [](Call& call) { Pool(call, Combine::kMax); },
                     true,
                     {{1, 2, 4, 6}}});
  library.push_back({"avg_pool",
                     "avg_pool(x[N, C, …]) → y",
                     "mean of each window; padding counts as zeros",
                     "N,C,…: --input-shape 8,64,56,56",
                     {size, stride2, padding},
                     [](Call& call) { Pool(call, Combine::kMean); },
                     true,
                     {{1, 2, 4, 6}}});
  library.push_back({"adaptive_avg_pool",
                     "adaptive_avg_pool(x[N, C, …]) → y",
                     "mean of equal cells",
                     "N,C,…: --input-shape 8,64,56,56",
                     {{"output", int64_t{1}, "cells along each axis"}},
                     BuildAdaptiveAverage,
                     true,
                     {{1, 2, 4, 6}}});
}

}  // namespace atunner::graph
