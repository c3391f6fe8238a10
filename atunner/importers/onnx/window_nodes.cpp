// Convolutions, pooling and resizing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "atunner/graph/library/windows.h"
#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Combine;
using graph::Value;
using graph::WindowAxes;
using graph::WindowAxis;

constexpr int64_t kLargest = int64_t{1} << 22;  ///< of strides, dilations and paddings

/// One number for each axis; an empty attribute is `fallback` for each.
Integers PerAxis(OnnxCall& call, std::string_view name, size_t n, int64_t fallback) {
  Integers list = call.List(name);
  if (list.empty()) list.resize(n, fallback);
  const bool fits = list.size() == n && std::ranges::all_of(list, [](int64_t each) {
                      return each >= -kLargest && each <= kLargest;
                    });
  if (!call.Check(fits, fmt::format("the attribute '{}' does not fit {} axes", name, n)))
    return Integers(n, fallback);
  return list;
}

/// The windows along each axis of an image of `sizes`: strides, dilations, and paddings that are
/// stated or follow from `auto_pad`.
WindowAxes AxesOf(OnnxCall& call, const Integers& sizes, const Integers& windows) {
  const size_t n = windows.size();
  const Integers stride = PerAxis(call, "strides", n, 1);
  const Integers dilation = PerAxis(call, "dilations", n, 1);
  const Integers pads = PerAxis(call, "pads", 2 * n, 0);
  const std::string automatic = call.Text("auto_pad", "NOTSET");
  WindowAxes axes(n);
  for (size_t i = 0; i < n; ++i) {
    if (!call.Check(stride[i] >= 1 && windows[i] >= 1 && dilation[i] >= 1,
                    "a stride, dilation or size of a window is below 1"))
      return axes;
    axes[i] = {stride[i], pads[i], pads[i + n], dilation[i]};
    if (automatic == "NOTSET") continue;
    axes[i].low = axes[i].high = 0;
    if (automatic == "VALID") continue;
    const int64_t count = (sizes[i] + stride[i] - 1) / stride[i];
    const int64_t reach = (count - 1) * stride[i] + dilation[i] * (windows[i] - 1) + 1;
    const int64_t all = std::max<int64_t>(reach - sizes[i], 0);
    axes[i].low = automatic == "SAME_LOWER" ? all - all / 2 : all / 2;
    axes[i].high = all - axes[i].low;
  }
  return axes;
}

/// The windows of a convolution of x by the filters w; nothing after an error.
std::optional<WindowAxes> ConvolutionAxes(OnnxCall& call, Value x, Value w) {
  const Integers image = call.SizesOf(x);
  const Integers filter = call.SizesOf(w);
  if (!call.Check(image.size() >= 3 && image.size() <= 5 && filter.size() == image.size(),
                  "a convolution with 1 to 3 spatial axes"))
    return std::nullopt;
  WindowAxes axes = AxesOf(call, {image.begin() + 2, image.end()},
                           {filter.begin() + 2, filter.end()});
  return call.g.ok() ? std::optional(std::move(axes)) : std::nullopt;
}

/// With `ceil_mode` a window may reach beyond the padding, if it begins before its end.
Integers CeilExtra(OnnxCall& call, const Integers& sizes, const Integers& windows,
                   const WindowAxes& axes) {
  Integers extra(windows.size(), 0);
  if (call.Whole("ceil_mode", 0) == 0) return extra;
  for (size_t i = 0; i < windows.size(); ++i) {
    const WindowAxis& axis = axes[i];
    const int64_t room = sizes[i] + axis.low + axis.high - axis.dilation * (windows[i] - 1) - 1;
    int64_t last = (room + axis.stride - 1) / axis.stride;
    if (last * axis.stride >= sizes[i] + axis.low) --last;
    extra[i] = std::max<int64_t>(last * axis.stride - room, 0);
  }
  return extra;
}

struct Pooling {
  Value x;
  Integers windows;
  WindowAxes axes;  ///< with what ceil_mode adds behind
  WindowAxes stated;
  Integers inner;  ///< axes of the elements inside of windows
};

/// Nothing if the image is none.
std::optional<Pooling> PoolingOf(OnnxCall& call) {
  Pooling pooling{call.In(0), call.List("kernel_shape"), {}, {}, {}};
  const Integers sizes = call.SizesOf(pooling.x);
  const size_t n = pooling.windows.size();
  if (!call.Check(n >= 1 && n <= 3 && sizes.size() == n + 2, "pooling with 1 to 3 spatial axes"))
    return std::nullopt;
  const Integers spatial(sizes.begin() + 2, sizes.end());
  pooling.stated = AxesOf(call, spatial, pooling.windows);
  pooling.axes = pooling.stated;
  if (!call.g.ok()) return std::nullopt;
  const Integers extra = CeilExtra(call, spatial, pooling.windows, pooling.stated);
  for (size_t i = 0; i < n; ++i) {
    pooling.axes[i].high += extra[i];
    pooling.inner.push_back(static_cast<int64_t>(3 + 2 * i));
  }
  return pooling;
}

/// The number of elements of each window that count for its mean.
Value CountsOf(OnnxCall& call, const Pooling& pooling, bool with_padding) {
  Integers sizes = call.SizesOf(pooling.x);
  sizes[0] = sizes[1] = 1;
  Value ones = call.Filled(sizes, call.TypeOf(pooling.x), 1);
  WindowAxes rest = pooling.axes;
  for (size_t i = 0; with_padding && i < rest.size(); ++i) {
    const auto& [stride, low, high, dilation] = pooling.stated[i];
    ones = call.g.Add(graph::Pad{static_cast<int64_t>(i) + 2, low, high, 0, 1}, {ones});
    rest[i].low -= low;
    rest[i].high -= high;
  }
  return call.g.Reduce(Combine::kSum, graph::Windows(call.g, ones, 2, pooling.windows, rest, 0),
                       pooling.inner);
}

Value WithBias(OnnxCall& call, Value y, size_t n) {
  if (!call.Has(2) || !call.g.ok()) return y;
  Integers sizes(n + 1, 1);
  const Value bias = call.In(2);
  sizes[0] = call.Size(bias, 0);
  return call.g.Map("a + b", {y, call.Reshape(bias, sizes)});
}

/// How a coordinate of the resized axis becomes one of the original.
std::string Original(const std::string& mode, double scale, int64_t from, int64_t to) {
  const double length = static_cast<double>(from) * scale;  // of the resized axis, not rounded
  const std::string place = "cast(index(-1), float64)";
  if (mode == "asymmetric") return fmt::format("{} / {}", place, scale);
  if (mode == "align_corners")
    return to == 1 ? "cast(0, float64)" : fmt::format("{} * {} / {}", place, from - 1, length - 1);
  if (mode == "pytorch_half_pixel" && to == 1) return "cast(0, float64)";
  return fmt::format("({} + 0.5) / {} - 0.5", place, scale);
}

/// The index that the nearest of two elements has.
std::string Nearest(const std::string& mode) {
  if (mode == "floor") return "floor({})";
  if (mode == "ceil") return "ceil({})";
  if (mode == "round_prefer_ceil") return "floor({} + 0.5)";
  return "ceil({} - 0.5)";
}

Value AlongLast(OnnxCall& call, int64_t count, const std::string& body) {
  return call.g.Map(body, {}, graph::Shape{count});
}

Value Picked(OnnxCall& call, Value x, int64_t axis, Value place) {
  const Value inside = call.g.Map(
      fmt::format("cast(maximum(0, minimum({}, a)), int64)", call.Size(x, axis) - 1), {place});
  return call.g.Add(graph::Gather{axis, 0}, {x, inside});
}

/// Keys' cubic: the weight of an element at the distance |t| from the place.
std::string CubicWeight(double a) {
  return fmt::format(
      "let t = abs(a), near = (({0} + 2) * t - ({0} + 3)) * t * t + 1, "
      "far = (({0} * t - 5 * {0}) * t + 8 * {0}) * t - 4 * {0} in "
      "select(t <= 1, near, select(t < 2, far, 0))",
      fmt::format("({})", a));
}

/// Four elements around each place. With `exclude_outside` those beyond the axis weigh nothing.
Value CubicAxis(OnnxCall& call, Value x, int64_t axis, int64_t to, const std::string& at) {
  const int64_t from = call.Size(x, axis);
  const bool excludes = call.Whole("exclude_outside", 0) != 0;
  const Value place = AlongLast(call, to, at);
  const Value first = call.g.Map("floor(a) - 1", {place});
  Integers sizes(static_cast<size_t>(call.Rank(x) - axis), 1);
  sizes[0] = to;
  Value sum;
  Value weights;
  for (int tap = 0; tap < 4; ++tap) {
    const Value index = call.g.Map(fmt::format("a + {}", tap), {first});
    Value weight = call.g.Map(CubicWeight(call.Real("cubic_coeff_a", -0.75)),
                              {call.g.Map("a - b", {place, index})});
    if (excludes)
      weight = call.g.Map(fmt::format("select((b < 0) | (b > {}), 0, a)", from - 1),
                          {weight, index});
    const Value wide = call.g.Cast(call.Reshape(weight, sizes), call.TypeOf(x));
    const Value part = call.g.Map("a * b", {Picked(call, x, axis, index), wide});
    sum = tap == 0 ? part : call.g.Map("a + b", {sum, part});
    weights = tap == 0 ? wide : call.g.Map("a + b", {weights, wide});
  }
  return excludes ? call.g.Map("a / b", {sum, weights}) : sum;
}

/// One axis resized by its nearest element, or by those around.
Value ResizedAxis(OnnxCall& call, Value x, int64_t axis, int64_t to, double scale,
                  const std::string& kind) {
  const int64_t from = call.Size(x, axis);
  const std::string mode = call.Text("coordinate_transformation_mode",
                                     call.opset < 11 ? "asymmetric" : "half_pixel");
  const std::string at = Original(mode, scale, from, to);
  if (kind == "cubic") return CubicAxis(call, x, axis, to, at);
  if (kind == "nearest") {
    const std::string nearest = call.Text("nearest_mode",
                                          call.opset < 11 ? "floor" : "round_prefer_floor");
    return Picked(call, x, axis,
                  AlongLast(call, to, fmt::format(fmt::runtime(Nearest(nearest)), "(" + at + ")")));
  }
  const Value place = AlongLast(call, to, fmt::format("maximum(0, minimum({}, {}))", from - 1, at));
  const Value low = call.g.Map("floor(a)", {place});
  Integers sizes(static_cast<size_t>(call.Rank(x) - axis), 1);
  sizes[0] = to;
  const Value share = call.g.Cast(call.Reshape(call.g.Map("a - b", {place, low}), sizes),
                                  call.TypeOf(x));
  return call.g.Map("a + c * (b - a)", {Picked(call, x, axis, low),
                                        Picked(call, x, axis, call.g.Map("a + 1", {low})), share});
}

}  // namespace

std::vector<Value> Convolution(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Value w = call.In(1);
  const auto axes = ConvolutionAxes(call, x, w);
  if (!axes) return {};
  const Value y = graph::Convolve(call.g, x, w, call.Whole("group", 1), *axes);
  return {WithBias(call, y, axes->size())};
}

/// The operands less their zero points, in 32-bit integers.
std::vector<Value> ConvolutionOfIntegers(OnnxCall& call, std::string_view) {
  const Value x = call.LessZeroPoint(0, 2);
  const Value w = call.LessZeroPoint(1, 3);
  const auto axes = ConvolutionAxes(call, x, w);
  if (!axes) return {};
  return {graph::Convolve(call.g, x, w, call.Whole("group", 1), *axes)};
}

/// x, its scale and zero point, the same of w and of y, and a bias in 32-bit integers.
std::vector<Value> QuantisedConvolution(OnnxCall& call, std::string_view) {
  const Value x = call.LessZeroPoint(0, 2);
  Value w = call.g.Cast(call.In(3), DType::kInt32);
  const auto axes = ConvolutionAxes(call, x, w);
  if (!axes) return {};
  Integers filters(static_cast<size_t>(call.Rank(w)), 1);  // one number for each filter, or one
  const auto of_filters = [&](size_t input, int64_t rank) {
    const Value given = call.In(input);
    const int64_t count = CountOf(call.SizesOf(given));
    Integers sizes(filters.begin(), filters.begin() + rank);
    sizes[0] = count;
    return call.Reshape(given, count == 1 ? Integers{} : sizes);
  };
  w = call.g.Map("a - b", {w, call.g.Cast(of_filters(5, call.Rank(w)), DType::kInt32)});
  Value sum = graph::Convolve(call.g, x, w, call.Whole("group", 1), *axes);
  const int64_t channel_rank = call.Rank(w) - 1;
  if (call.Has(8)) sum = call.g.Map("a + b", {sum, of_filters(8, channel_rank)});
  const Value scaled = call.g.Map("a * b * c / d",
                                  {call.g.Cast(sum, DType::kFloat32), of_filters(1, channel_rank),
                                   of_filters(4, channel_rank), of_filters(6, channel_rank)});
  const Value zero = call.g.Cast(of_filters(7, channel_rank), DType::kFloat32);
  return {call.Saturated(call.g.Map("round(a) + b", {scaled, zero}), call.TypeOf(call.In(7)))};
}

/// `output_shape` states the sizes of the result, from which the paddings follow.
std::vector<Value> TransposedConvolution(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Value w = call.In(1);
  const Integers image = call.SizesOf(x);
  const Integers filter = call.SizesOf(w);
  auto stated_axes = ConvolutionAxes(call, x, w);
  if (!stated_axes) return {};
  WindowAxes& axes = *stated_axes;
  const size_t n = axes.size();
  Integers added = PerAxis(call, "output_padding", n, 0);
  const Integers stated = call.List("output_shape");
  const std::string automatic = call.Text("auto_pad", "NOTSET");
  const bool same = automatic.starts_with("SAME");
  if (!call.g.ok() || !call.Check(stated.empty() || stated.size() >= n, "a wrong output_shape"))
    return {};
  for (size_t i = 0; i < n && (same || !stated.empty()); ++i) {
    const int64_t wanted = stated.empty() ? image[i + 2] * axes[i].stride
                                          : stated[stated.size() - n + i];
    const int64_t all = (image[i + 2] - 1) * axes[i].stride + added[i] +
                        axes[i].dilation * (filter[i + 2] - 1) + 1 - wanted;
    const int64_t cut = std::max<int64_t>(all, 0);
    axes[i].low = automatic == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    axes[i].high = cut - axes[i].low;
    added[i] += std::max<int64_t>(-all, 0);
  }
  const Value y = graph::ConvolveTransposed(call.g, x, w, call.Whole("group", 1), axes, added);
  return {WithBias(call, y, n)};
}

namespace {

/// Where in the whole image tensor the largest element of each window stands. `largest` is its
/// place in the window, row by row.
Value PlacesInImage(OnnxCall& call, const Pooling& pooling, Value largest) {
  const Integers sizes = call.SizesOf(pooling.x);
  const bool columns_first = call.Whole("storage_order", 0) != 0;
  const size_t n = pooling.windows.size();
  std::string place = columns_first ? "0"
                                    : fmt::format("(index({}) * {} + index({}))",
                                                  -2 - static_cast<int64_t>(n), sizes[1],
                                                  -1 - static_cast<int64_t>(n));
  int64_t inner = 1;   // elements of a window behind this axis
  int64_t stride = 1;  // of this axis, if columns come first
  std::vector<std::string> coordinates(n);
  for (size_t i = n; i-- > 0; inner *= pooling.windows[i]) {
    const WindowAxis& axis = pooling.axes[i];
    coordinates[i] = fmt::format("(index({}) * {} - ({}) + mod(floor_div(a, {}), {}) * {})",
                                 static_cast<int64_t>(i) - static_cast<int64_t>(n), axis.stride,
                                 axis.low, inner, pooling.windows[i], axis.dilation);
  }
  for (size_t i = 0; i < n; ++i) {
    place = columns_first ? fmt::format("{} + {} * {}", place, coordinates[i], stride)
                          : fmt::format("({} * {} + {})", place, sizes[i + 2], coordinates[i]);
    stride *= sizes[i + 2];
  }
  if (columns_first)
    place = fmt::format("(index({}) * {} + index({})) * {} + {}", -2 - static_cast<int64_t>(n),
                        sizes[1], -1 - static_cast<int64_t>(n), stride, place);
  return call.g.Map(place, {largest});
}

/// Windows [N, C, p, r, q, s, …] as [N, C, p, q, …, r · s …].
Value WithElementsLast(OnnxCall& call, Value windows, const Pooling& pooling) {
  const auto n = static_cast<int64_t>(pooling.windows.size());
  const Integers sizes = call.SizesOf(windows);
  Integers order{0, 1}, kept{sizes[0], sizes[1]};
  for (int64_t i = 0; i < n; ++i) {
    order.push_back(2 + 2 * i);
    kept.push_back(sizes[static_cast<size_t>(2 + 2 * i)]);
  }
  order.insert(order.end(), pooling.inner.begin(), pooling.inner.end());
  kept.push_back(CountOf(pooling.windows));
  return call.Reshape(call.g.Transpose(windows, order), kept);
}

}  // namespace

std::vector<Value> MaxPool(OnnxCall& call, std::string_view) {
  const auto pooling = PoolingOf(call);
  if (!pooling) return {};
  const DType type = call.TypeOf(pooling->x);
  const double least = IsFloat(type) ? -std::numeric_limits<double>::infinity()
                       : KindOf(type) == DTypeKind::kUnsigned
                           ? 0
                           : -std::ldexp(1, static_cast<int>(SizeOf(type)) * 8 - 1);
  const Value windows = graph::Windows(call.g, pooling->x, 2, pooling->windows, pooling->axes,
                                       least);
  const Value y = call.g.Add(graph::Reduce{Combine::kMax, pooling->inner, false, /*first=*/true},
                             {windows});
  if (!call.UsesOutput(1)) return {y};
  const Value elements = WithElementsLast(call, windows, *pooling);
  const Value largest = call.g.Reduce(Combine::kArgMax, elements, {call.Rank(elements) - 1});
  return {y, PlacesInImage(call, *pooling, largest)};
}

/// Elements at the places in the whole tensor that MaxPool stated; 0 elsewhere.
std::vector<Value> MaxUnpool(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Integers sizes = call.SizesOf(x);
  const Integers windows = call.List("kernel_shape");
  const size_t n = windows.size();
  const bool fits = std::ranges::all_of(windows, [](int64_t w) { return w >= 1 && w <= kLargest; });
  if (!call.Check(n >= 1 && sizes.size() == n + 2 && fits, "pooling of this rank")) return {};
  const Integers stride = PerAxis(call, "strides", n, 1);
  const Integers pads = PerAxis(call, "pads", 2 * n, 0);
  if (!call.g.ok()) return {};
  Integers inferred(sizes.begin(), sizes.begin() + 2);
  for (size_t i = 0; i < n; ++i)
    inferred.push_back((sizes[i + 2] - 1) * stride[i] + windows[i] - pads[i] - pads[i + n]);
  const int64_t count = CountOf(inferred), given = CountOf(sizes);
  if (!call.Check(count >= 1, "an image without elements")) return {};
  const Value zeros = call.Filled({count}, call.TypeOf(x), 0);
  const Value places = call.Reshape(call.g.Cast(call.In(1), DType::kInt64), {given});
  Value y = call.g.Add(graph::Scatter{Combine::kSet, 0, 0},
                       {zeros, places, call.Reshape(x, {given})});
  y = call.Reshape(y, inferred);
  const Integers stated = call.Has(2) ? call.Wholes(2) : inferred;
  if (!call.Check(stated.size() == inferred.size(), "an output_shape of another rank")) return {};
  for (size_t i = 0; i < stated.size() && call.g.ok(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (stated[i] > inferred[i])
      y = call.g.Add(graph::Pad{axis, 0, stated[i] - inferred[i], 0, 0}, {y});
    else if (stated[i] < inferred[i])
      y = call.SliceOf(y, axis, 0, stated[i]);
  }
  return {y};
}

/// Windows [N, C · elements, count] added into images; windows overlap.
std::vector<Value> Col2Im(OnnxCall& call, std::string_view) {
  Value x = call.In(0);
  const Integers image = call.Wholes(1), block = call.Wholes(2);
  const size_t n = block.size();
  if (!call.g.ok() ||
      !call.Check(n >= 1 && image.size() == n && call.Rank(x) == 3 && CountOf(block) >= 1 &&
                      call.Size(x, 1) % CountOf(block) == 0 && std::ranges::max(image) <= kLargest,
                  "windows of these shapes"))
    return {};
  const WindowAxes axes = AxesOf(call, image, block);
  Integers sizes{call.Size(x, 0), call.Size(x, 1) / CountOf(block)};
  Integers counts;
  for (size_t i = 0; i < n && call.g.ok(); ++i) {
    const WindowAxis& axis = axes[i];
    const int64_t room = image[i] + axis.low + axis.high - axis.dilation * (block[i] - 1) - 1;
    counts.push_back(room / axis.stride + 1);
  }
  if (!call.g.ok() || !call.Check(CountOf(counts) == call.Size(x, 2), "another number of windows"))
    return {};
  sizes.insert(sizes.end(), block.begin(), block.end());
  sizes.insert(sizes.end(), counts.begin(), counts.end());
  x = call.Reshape(x, sizes);
  Integers order{0, 1};  // [N, C, window, element, …], as Fold has them
  for (size_t i = 0; i < n; ++i) {
    order.push_back(static_cast<int64_t>(2 + n + i));
    order.push_back(static_cast<int64_t>(2 + i));
  }
  x = call.g.Transpose(x, order);
  for (size_t i = 0; i < n; ++i) {
    const WindowAxis& axis = axes[i];
    const auto at = static_cast<int64_t>(i) + 2;
    const int64_t extent = image[i] + axis.low + axis.high;
    x = call.g.Add(graph::Fold{at, extent, axis.stride, axis.dilation}, {x});
    if (axis.low + axis.high > 0) x = call.SliceOf(x, at, axis.low, axis.low + image[i]);
  }
  return {x};
}

std::vector<Value> AveragePool(OnnxCall& call, std::string_view) {
  auto pooling = PoolingOf(call);
  if (!pooling) return {};
  const DType type = call.TypeOf(pooling->x);
  pooling->x = call.Wide(pooling->x);
  const Value windows = graph::Windows(call.g, pooling->x, 2, pooling->windows, pooling->axes, 0);
  const auto padded = [](const WindowAxes& axes) {
    return std::ranges::any_of(axes, [](const WindowAxis& axis) { return axis.low + axis.high; });
  };
  const bool with_padding = call.Whole("count_include_pad", 0) != 0;
  const bool beyond = !std::ranges::equal(pooling->axes, pooling->stated, {}, &WindowAxis::high,
                                          &WindowAxis::high);
  const bool all_count = !beyond && (with_padding || !padded(pooling->axes));
  const Value y = all_count
                      ? call.g.Reduce(Combine::kMean, windows, pooling->inner)
                      : call.g.Map("a / b", {call.g.Reduce(Combine::kSum, windows, pooling->inner),
                                             CountsOf(call, *pooling, with_padding)});
  return {call.g.Cast(y, type)};
}

std::vector<Value> LpPool(OnnxCall& call, std::string_view) {
  auto pooling = PoolingOf(call);
  if (!pooling) return {};
  const int64_t p = call.Whole("p", 2);
  const DType type = call.TypeOf(pooling->x);
  const Value powers = call.g.Map(fmt::format("abs(a) ** {}", p), {call.Wide(pooling->x)});
  const Value windows = graph::Windows(call.g, powers, 2, pooling->windows, pooling->axes, 0);
  const Value sum = call.g.Reduce(Combine::kSum, windows, pooling->inner);
  return {call.g.Cast(call.g.Map(fmt::format("a ** (1 / {})", p), {sum}), type)};
}

std::vector<Value> GlobalPool(OnnxCall& call, std::string_view text) {
  const Value x = call.In(0);
  Integers axes;
  for (int64_t axis = 2; axis < call.Rank(x); ++axis) axes.push_back(axis);
  if (!call.Check(!axes.empty(), "an image without spatial axes")) return {};
  if (text == "max") return {call.g.Reduce(Combine::kMax, x, axes, true)};
  if (text == "mean")
    return {call.g.Cast(call.g.Reduce(Combine::kMean, call.Wide(x), axes, true), call.TypeOf(x))};
  const int64_t p = call.Whole("p", 2);
  const Value powers = call.g.Map(fmt::format("abs(a) ** {}", p), {call.Wide(x)});
  const Value sum = call.g.Reduce(Combine::kSum, powers, axes, true);
  return {call.g.Cast(call.g.Map(fmt::format("a ** (1 / {})", p), {sum}), call.TypeOf(x))};
}

std::vector<Value> Resize(OnnxCall& call, std::string_view text) {
  Value x = call.In(0);
  const Integers sizes = call.SizesOf(x);
  const std::string mode = call.Text("mode", "nearest");
  const bool upsample = text == "upsample";
  if (call.Whole("antialias", 0) != 0 ||
      call.Text("coordinate_transformation_mode", "") == "tf_crop_and_resize" ||
      call.Text("keep_aspect_ratio_policy", "stretch") != "stretch")
    return {call.Unsupported("resizing by this mode",
                             "nearest, linear and cubic are computed, without antialiasing")};
  Integers axes(sizes.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  for (Integers stated = call.List("axes"); !stated.empty(); stated.clear()) axes = stated;
  const size_t scales_input = upsample || call.opset < 11 ? 1 : 2;
  const auto scales = call.Known(scales_input);
  const bool by_scale = scales && !scales->cells.empty();
  const Integers wanted = by_scale || upsample ? Integers() : call.Wholes(3);
  const size_t count = by_scale ? scales->cells.size() : wanted.size();
  if (!call.g.ok() || !call.Check(count == axes.size(), "resizing needs a scale for each axis"))
    return {};
  for (size_t i = 0; i < axes.size() && call.g.ok(); ++i) {
    const int64_t axis = call.Axis(axes[i], call.Rank(x));
    const int64_t from = call.Size(x, axis);
    const double scale = by_scale ? graph::ToReal(scales->dtype, scales->cells[i])
                                  : static_cast<double>(wanted[i]) / static_cast<double>(from);
    const auto to = by_scale ? static_cast<int64_t>(std::floor(static_cast<double>(from) * scale))
                             : wanted[i];
    if (!call.Check(to >= 1 && to < kLargest, "a resized axis without elements, or too long"))
      return {};
    if (to != from || scale != 1) x = ResizedAxis(call, x, axis, to, scale, mode);
  }
  return {x};
}

}  // namespace atunner::importers::onnx
