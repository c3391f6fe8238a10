// Images read at computed places: grids, regions, and windows that are moved.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

/// Elements of x [N, C, spatial…] at whole coordinates, one tensor [N, P] for each spatial axis:
/// [N, P, C]. Coordinates beyond the image read the element next to them.
class Pixels {
 public:
  Pixels(OnnxCall& call, Value x) : call_(call), sizes_(call.SizesOf(x)) {
    const int64_t count = CountOf({sizes_.begin() + 2, sizes_.end()});
    flat_ = call.g.Transpose(call.Reshape(x, {sizes_[0], sizes_[1], count}), {0, 2, 1});
  }

  Value At(const std::vector<Value>& places) const {
    Value linear;
    for (size_t i = 0; i < places.size(); ++i) {
      const int64_t extent = sizes_[i + 2];
      const Value inside = call_.g.Map(
          fmt::format("cast(maximum(0, minimum({}, a)), int64)", extent - 1), {places[i]});
      linear = i == 0 ? inside : call_.g.Map(fmt::format("a * {} + b", extent), {linear, inside});
    }
    return call_.g.Add(graph::Gather{1, 1}, {flat_, linear});
  }

 private:
  OnnxCall& call_;
  Integers sizes_;
  Value flat_;
};

/// [N, P] as a factor of [N, P, C].
Value Factor(OnnxCall& call, Value x, DType type) {
  return call.g.Cast(call.Reshape(x, {call.Size(x, 0), call.Size(x, 1), 1}), type);
}

/// Reflects a coordinate at the borders until it lies between them.
std::string Reflected(double low, double high) {
  if (high <= low) return fmt::format("a * 0 + {}", low);
  return fmt::format("let t = mod(a - ({0}), {1}) in ({0}) + minimum(t, {1} - t)", low,
                     2 * (high - low));
}

/// How GridSample reads beside the image.
struct Border {
  std::string mode;
  bool corners = false;

  double low() const { return corners ? 0 : -0.5; }
  double high(int64_t extent) const { return static_cast<double>(extent) - (corners ? 1 : 0.5); }
};

Value Limited(OnnxCall& call, Value place, int64_t extent, const Border& border) {
  if (border.mode == "border")
    return call.g.Map(fmt::format("maximum(0, minimum({}, a))", extent - 1), {place});
  if (border.mode == "reflection")
    return call.g.Map(Reflected(border.low(), border.high(extent)), {place});
  return place;
}

/// A place between elements. One that is less than half an element beyond the image stays: its
/// neighbours are limited.
Value LimitedPlace(OnnxCall& call, Value place, int64_t extent, const Border& border) {
  if (border.mode != "border") return Limited(call, place, extent, border);
  return call.g.Map(fmt::format("select((a < {}) | (a > {}), maximum(0, minimum({}, a)), a)",
                                border.low(), border.high(extent), extent - 1),
                    {place});
}

/// The weight of the tap at `tap` of those around a place; `t` is the distance behind the first.
std::string WeightOf(bool cubic, int tap) {
  if (!cubic) return tap == 0 ? "1 - a" : "a";
  constexpr double kAlpha = -0.75;
  return fmt::format(
      "let t = abs(a - ({1})), near = (({0} + 2) * t - ({0} + 3)) * t * t + 1, "
      "far = (({0} * t - 5 * {0}) * t + 8 * {0}) * t - 4 * {0} in select(t <= 1, near, far)",
      fmt::format("({})", kAlpha), tap - 1);
}

/// Sums weighted elements around places, one tensor [N, P] for each axis.
Value Interpolated(OnnxCall& call, Value x, const std::vector<Value>& places, bool cubic,
                   const Border& border) {
  const Pixels pixels(call, x);
  const DType type = call.TypeOf(x);
  const int taps = cubic ? 4 : 2;
  const int all = static_cast<int>(std::pow(taps, places.size()));
  std::vector<Value> firsts, shares;
  for (const Value place : places) {
    firsts.push_back(call.g.Map("floor(a)", {place}));
    shares.push_back(call.g.Map("a - b", {place, firsts.back()}));
  }
  Value sum;
  for (int number = 0; number < all; ++number) {
    std::vector<Value> at;
    Value weight;
    int rest = number;
    for (size_t i = 0; i < places.size(); ++i, rest /= taps) {
      const int tap = rest % taps;
      const int64_t extent = call.Size(x, static_cast<int64_t>(i) + 2);
      const Value own = call.g.Map(fmt::format("a + ({})", cubic ? tap - 1 : tap), {firsts[i]});
      Value factor = call.g.Map(WeightOf(cubic, tap), {shares[i]});
      if (border.mode == "zeros")
        factor = call.g.Map(fmt::format("select((b < 0) | (b > {}), 0, a)", extent - 1),
                            {factor, own});
      at.push_back(Limited(call, own, extent, border));
      weight = i == 0 ? factor : call.g.Map("a * b", {weight, factor});
    }
    const Value part = call.g.Map("a * b", {pixels.At(at), Factor(call, weight, type)});
    sum = number == 0 ? part : call.g.Map("a + b", {sum, part});
  }
  return sum;
}

Value NearestOf(OnnxCall& call, Value x, const std::vector<Value>& places, const Border& border) {
  std::vector<Value> at;
  Value inside;
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t extent = call.Size(x, static_cast<int64_t>(i) + 2);
    at.push_back(places[i]);
    const Value here = call.g.Map(fmt::format("(a >= 0) & (a <= {})", extent - 1), {places[i]});
    inside = i == 0 ? here : call.g.Map("a & b", {inside, here});
  }
  const Value y = Pixels(call, x).At(at);
  if (border.mode != "zeros") return y;
  return call.g.Map("select(b, a, 0)",
                    {y, call.Reshape(inside, {call.Size(inside, 0), call.Size(inside, 1), 1})});
}

/// [N, P, C] as [N, C, sizes…].
Value AsImages(OnnxCall& call, Value y, const Integers& spatial) {
  Integers sizes{call.Size(y, 0), call.Size(y, 2)};
  sizes.insert(sizes.end(), spatial.begin(), spatial.end());
  return call.Reshape(call.g.Transpose(y, {0, 2, 1}), sizes);
}

/// The coordinate of an axis of an image from -1 to 1, at the index `at`.
std::string Normalised(const std::string& at, int64_t extent, bool corners) {
  const std::string place = fmt::format("cast({}, float64)", at);
  if (!corners) return fmt::format("((2 * {} + 1) / {} - 1)", place, extent);
  return extent == 1 ? "cast(-1, float64)" : fmt::format("(2 * {} / {} - 1)", place, extent - 1);
}

}  // namespace

/// The grid's last axis holds coordinates from -1 to 1, that of the last axis of the image first.
std::vector<Value> GridSample(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Value grid = call.In(1);
  const int64_t axes = call.Rank(x) - 2;
  if (!call.Check(axes >= 1 && axes <= 3 && call.Rank(grid) == axes + 2 &&
                      call.Size(grid, axes + 1) == axes,
                  "a grid of the image's rank"))
    return {};
  const Border border{call.Text("padding_mode", "zeros"), call.Whole("align_corners", 0) != 0};
  const std::string mode = call.Text("mode", "linear");
  const bool nearest = mode == "nearest";
  const bool cubic = mode == "cubic" || mode == "bicubic";
  const Integers sizes = call.SizesOf(grid);
  const int64_t count = CountOf({sizes.begin() + 1, sizes.end() - 1});
  std::vector<Value> places;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t extent = call.Size(x, axis + 2);
    const Value own = call.Wide(call.Reshape(
        call.SliceOf(grid, axes + 1, axes - 1 - axis, axes - axis), {sizes[0], count}));
    Value place = call.g.Map(border.corners ? fmt::format("(a + 1) / 2 * {}", extent - 1)
                                            : fmt::format("((a + 1) * {} - 1) / 2", extent),
                             {own});
    // Three axes round halves away from 0, as PyTorch does.
    if (nearest)
      place = call.g.Map(axes == 3 ? "select(a < 0, ceil(a - 0.5), floor(a + 0.5))" : "round(a)",
                         {place});
    places.push_back(nearest ? Limited(call, place, extent, border)
                             : LimitedPlace(call, place, extent, border));
  }
  const Value y = nearest ? NearestOf(call, x, places, border)
                          : Interpolated(call, x, places, cubic, border);
  return {AsImages(call, y, {sizes.begin() + 1, sizes.end() - 1})};
}

/// theta [N, n, n + 1] on the coordinates of an image of the size, from -1 to 1.
std::vector<Value> AffineGrid(OnnxCall& call, std::string_view) {
  const Value theta = call.In(0);
  const Integers size = call.Wholes(1);
  const int64_t axes = std::ssize(size) - 2;
  if (!call.g.ok() ||
      !call.Check((axes == 2 || axes == 3) && call.Rank(theta) == 3 &&
                      call.Size(theta, 1) == axes && call.Size(theta, 2) == axes + 1,
                  "a matrix for images of two or three axes"))
    return {};
  const bool corners = call.Whole("align_corners", 0) != 0;
  Integers ones{call.Size(theta, 0)};
  ones.insert(ones.end(), static_cast<size_t>(axes), 1);
  ones.push_back(axes);
  graph::Shape shape{call.Size(theta, 0)};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(axes);
  std::vector<Value> columns;
  std::string body(1, static_cast<char>('a' + axes));
  for (int64_t i = 0; i <= axes; ++i) {
    columns.push_back(
        call.g.Cast(call.Reshape(call.SliceOf(theta, 2, i, i + 1), ones), DType::kFloat64));
    if (i == axes) break;
    // The first column belongs to the last axis of the image.
    body += fmt::format(" + {} * {}", static_cast<char>('a' + i),
                        Normalised(fmt::format("index({})", -2 - i),
                                   size[static_cast<size_t>(axes + 1 - i)], corners));
  }
  return {call.g.Cast(call.g.Map(body, columns, shape), call.TypeOf(theta))};
}

/// Regions of images, divided into bins. Each bin is the mean or the largest of values that are
/// interpolated at `sampling_ratio`² places inside of it.
std::vector<Value> RoiAlign(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Value regions = call.Wide(call.In(1));
  const int64_t height = call.Whole("output_height", 1), width = call.Whole("output_width", 1);
  const int64_t samples = call.Whole("sampling_ratio", 0);
  if (samples < 1) return {call.Unsupported("a number of samples that depends on the regions")};
  if (!call.Check(call.Rank(x) == 4 && call.Rank(regions) == 2 && height >= 1 && width >= 1,
                  "regions of images"))
    return {};
  const bool half = call.Text("coordinate_transformation_mode",
                              call.opset < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const bool largest = call.Text("mode", "avg") == "max";
  const double scale = call.Real("spatial_scale", 1);
  const int64_t count = call.Size(regions, 0), channels = call.Size(x, 1);
  const int64_t h = call.Size(x, 2), w = call.Size(x, 3);
  // The images of the regions: [regions, channels, h, w].
  const Value images = call.g.Add(graph::Gather{0, 0}, {x, call.g.Cast(call.In(2), DType::kInt64)});
  const Integers all{height, width, samples, samples};
  const int64_t places = CountOf(all);
  graph::Shape shape{count};
  shape.insert(shape.end(), all.begin(), all.end());
  const auto column = [&](int64_t at) {
    return call.Reshape(call.SliceOf(regions, 1, at, at + 1), {count, 1, 1, 1, 1});
  };
  const auto type = Name(call.TypeOf(regions));
  const auto coordinates = [&](int64_t first, int bin, int sample, int64_t bins, int64_t extent) {
    const std::string place = fmt::format("a * {} - {}", scale, half ? 0.5 : 0.0);
    const Value from = call.g.Map(place, {column(first)});
    const Value to = call.g.Map(place, {column(first + 2)});
    const Value at = call.g.Map(
        fmt::format("let s = {} / {} in a + s * (cast(index({}), {}) + "
                    "(cast(index({}), {}) + 0.5) / {})",
                    half ? "(b - a)" : "maximum(b - a, 1)", bins, bin, type, sample, type, samples),
        {from, to}, shape);
    const Value flat = call.Reshape(at, {count, places});
    const Value inside = call.g.Map(fmt::format("(a >= -1) & (a <= {})", extent), {flat});
    return std::pair(call.g.Map(fmt::format("maximum(0, minimum({}, a))", extent - 1), {flat}),
                     inside);
  };
  const auto [row, row_inside] = coordinates(1, -4, -2, height, h);
  const auto [col, col_inside] = coordinates(0, -3, -1, width, w);
  const Pixels pixels(call, images);
  const Value inside = call.Reshape(call.g.Map("a & b", {row_inside, col_inside}),
                                    {count, places, 1});
  std::vector<Value> corners;
  for (int corner = 0; corner < 4; ++corner) {
    const auto tap = [&](Value place, bool second) {
      const Value base = call.g.Map("floor(a)", {place});
      return std::pair(second ? call.g.Map("a + 1", {base}) : base,
                       call.g.Map(second ? "a - b" : "1 - (a - b)", {place, base}));
    };
    const auto [y, y_weight] = tap(row, corner / 2 == 1);
    const auto [at, x_weight] = tap(col, corner % 2 == 1);
    const Value weight = Factor(call, call.g.Map("a * b", {y_weight, x_weight}), call.TypeOf(x));
    corners.push_back(call.g.Map("select(c, a * b, 0)", {pixels.At({y, at}), weight, inside}));
  }
  Value value = corners[0];
  for (size_t i = 1; i < corners.size(); ++i)
    value = call.g.Map(largest ? "maximum(a, b)" : "a + b", {value, corners[i]});
  const Value bins = call.Reshape(value, {count, height, width, samples * samples, channels});
  const Value y = call.g.Reduce(largest ? graph::Combine::kMax : graph::Combine::kMean, bins, {3});
  return {call.g.Cast(call.g.Transpose(y, {0, 3, 1, 2}), call.TypeOf(x))};
}

}  // namespace atunner::importers::onnx
