// Fourier transforms and what belongs to them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

constexpr int64_t kLongest = 1 << 20;      ///< of transforms: i · k must be exact
constexpr double kMostElements = 1 << 24;  ///< of a constant

struct Transform {
  int64_t length = 1;
  bool inverse = false;
  bool onesided = false;
};

/// The axis has `length` elements: what is behind is cut off, and 0 is added.
Value OfLength(OnnxCall& call, Value x, int64_t axis, int64_t length) {
  const int64_t given = call.Size(x, axis);
  if (given > length) return call.SliceOf(x, axis, 0, length);
  return given == length ? x : call.g.Add(graph::Pad{axis, 0, length - given, 0, 0}, {x});
}

/// cos or sin of 2π·i·k/n, for i < n and k < count. The product is reduced by n first, so that the
/// angle is small and exact.
Value Waves(OnnxCall& call, const char* function, int64_t n, int64_t count, DType type) {
  const std::string angle = fmt::format("cast(mod(index(-2) * index(-1), {}), float64) * {}", n,
                                        2 * std::numbers::pi / static_cast<double>(n));
  return call.g.Cast(call.g.Map(fmt::format("{}({})", function, angle), {}, graph::Shape{n, count}),
                     type);
}

/// The discrete Fourier transform along an axis; the last axis holds one (real) or two numbers. As
/// products with matrices of cosines and sines.
Value Transformed(OnnxCall& call, Value x, int64_t axis, const Transform& how) {
  const int64_t rank = call.Rank(x);
  const int64_t parts = call.Size(x, rank - 1);
  const int64_t n = how.length;
  if (!call.Check(
          rank >= 2 && axis < rank - 1 && (parts == 1 || parts == 2) && n >= 1 && n <= kLongest,
          "a transform of this shape"))
    return {};
  const DType type = call.TypeOf(x);
  x = OfLength(call, x, axis, n);
  Integers order;  // the axis goes behind the others, before the parts
  for (int64_t i = 0; i + 1 < rank; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  order.push_back(rank - 1);
  x = call.g.Transpose(call.Wide(x), order);
  Integers sizes = call.SizesOf(x);
  const int64_t rows = CountOf(sizes) / (n * parts);
  const auto part = [&](int64_t at) {
    return call.Reshape(call.SliceOf(x, rank - 1, at, at + 1), {rows, n});
  };
  const int64_t count = how.onesided ? n / 2 + 1 : n;
  const DType wide = call.TypeOf(x);
  const Value cosine = Waves(call, "cos", n, count, wide);
  const Value sine = Waves(call, "sin", n, count, wide);
  const auto product = [&](Value a, Value b) { return call.g.Contract("rn,nk->rk", a, b); };
  // Forward: (a + ib)(cos - i sin); backward: (a + ib)(cos + i sin) / n.
  const char* sign = how.inverse ? "" : "-";
  Value real = product(part(0), cosine);
  Value imaginary = call.g.Map(fmt::format("{}a", sign), {product(part(0), sine)});
  if (parts == 2) {
    real = call.g.Map(how.inverse ? "a - b" : "a + b", {real, product(part(1), sine)});
    imaginary = call.g.Map("a + b", {imaginary, product(part(1), cosine)});
  }
  sizes[static_cast<size_t>(rank - 2)] = count;
  sizes.back() = 1;
  Value y = call.g.Add(graph::Concat{rank - 1},
                       {call.Reshape(real, sizes), call.Reshape(imaginary, sizes)});
  if (how.inverse) y = call.g.Map(fmt::format("a / {}", n), {y});
  Integers back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return call.g.Cast(call.g.Transpose(y, back), type);
}

double Mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double Hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

}  // namespace

/// The axis is an attribute before operator set 20, an input from it on.
std::vector<Value> Dft(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const bool as_input = call.opset >= 20;
  const int64_t stated = !as_input     ? call.Whole("axis", 1)
                         : call.Has(2) ? static_cast<int64_t>(call.Number(2))
                                       : -2;
  const int64_t axis = call.Axis(stated, call.Rank(x));
  const int64_t length = call.Has(1) ? static_cast<int64_t>(call.Number(1)) : call.Size(x, axis);
  if (!call.g.ok()) return {};
  return {Transformed(call, x, axis,
                      {length, call.Whole("inverse", 0) != 0, call.Whole("onesided", 0) != 0})};
}

/// Transforms of windows of the signal [batch, length, parts], `frame_step` apart.
std::vector<Value> Stft(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const auto step = static_cast<int64_t>(call.Number(1));
  const int64_t given = call.Size(x, 1);
  const int64_t length = call.Has(3)   ? static_cast<int64_t>(call.Number(3))
                         : call.Has(2) ? call.Size(call.In(2), 0)
                                       : given;
  if (!call.g.ok() || !call.Check(call.Rank(x) == 3 && step >= 1 && length >= 1 && length <= given,
                                  "frames of this length and step of this signal"))
    return {};
  Value frames = call.g.Add(graph::Window{1, length, step, 1}, {x});
  if (call.Has(2)) {
    const Value window = OfLength(call, call.In(2), 0, length);
    frames = call.g.Map("a * b", {frames, call.Reshape(window, {length, 1})});
  }
  return {Transformed(call, frames, 2, {length, false, call.Whole("onesided", 1) != 0})};
}

/// Triangles that are equally wide in mel: [bins of a spectrum, bins in mel].
std::vector<Value> MelWeightMatrix(OnnxCall& call, std::string_view) {
  const double bands = call.Number(0), length = call.Number(1), rate = call.Number(2);
  const double low = call.Number(3), high = call.Number(4);
  if (!call.g.ok()) return {};
  const double bins = std::floor(length / 2) + 1;
  if (!call.Check(bands >= 1 && length >= 1 && rate > 0 && low >= 0 && high >= low &&
                      bands * bins <= kMostElements,
                  "a matrix of these sizes and frequencies"))
    return {};
  std::vector<double> edges;  // in bins of the spectrum
  const double step = (Mel(high) - Mel(low)) / (bands + 2);
  for (double i = 0; i < bands + 2; ++i)
    edges.push_back(std::floor((length + 1) * Hertz(i * step + Mel(low)) / rate));
  std::vector<double> values(static_cast<size_t>(bands * bins), 0);
  const auto set = [&](double bin, size_t band, double value) {
    if (bin < bins) values[static_cast<size_t>(bin) * static_cast<size_t>(bands) + band] = value;
  };
  for (size_t band = 0; band + 2 < edges.size(); ++band) {
    const double from = edges[band], centre = edges[band + 1], to = edges[band + 2];
    for (double i = from; i <= centre; ++i)
      set(i, band, centre == from ? 1 : (i - from) / (centre - from));
    for (double i = centre; i < to; ++i) set(i, band, (to - i) / (to - centre));
  }
  const DType type = OnnxDType(call.Whole("output_datatype", 1)).value_or(DType::kFloat32);
  return {ConstantOf(
      call.g,
      graph::Tensor::Of(type, {static_cast<int64_t>(bins), static_cast<int64_t>(bands)}, values))};
}

}  // namespace atunner::importers::onnx
