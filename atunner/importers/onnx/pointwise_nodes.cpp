// Element-wise operators, conversions and quantisation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "atunner/graph/expression_text.h"
#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

/// "$alpha * a; alpha=0.01" with the node's attributes in the place of $alpha.
std::string WithAttributes(const OnnxCall& call, std::string_view text) {
  const size_t semicolon = std::min(text.find(';'), text.size());
  std::string body(text.substr(0, semicolon));
  std::string_view defaults = text.substr(semicolon);
  while (defaults.size() > 1) {
    defaults.remove_prefix(1);  // the semicolon or a space
    const std::string_view pair = defaults.substr(0, defaults.find(' '));
    defaults.remove_prefix(pair.size());
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(pair.substr(0, equals));
    const double value = call.Real(name, std::stod(std::string(pair.substr(equals + 1))));
    const std::string number = fmt::format("({})", graph::PrintNumber(value));
    for (size_t at = body.find("$" + name); at != std::string::npos; at = body.find("$" + name))
      body.replace(at, name.size() + 1, number);
  }
  return body;
}

/// The quotient of integers is rounded towards zero.
constexpr const char* kTruncatedQuotient =
    "let q = floor_div(a, b), r = a - q * b in select((r != 0) & ((a < 0) ^ (b < 0)), q + 1, q)";

Value Converted(OnnxCall& call, Value x, DType type) {
  if (type == DType::kBool && call.TypeOf(x) != DType::kBool) return call.g.Map("a != 0", {x});
  const bool saturates = SizeOf(type) == 1 && IsFloat(type) && IsFloat(call.TypeOf(x)) &&
                         call.Whole("saturate", 1) != 0;
  if (saturates && call.TypeOf(x) != type)
    return call.g.Map(fmt::format("cast(a, {}, saturate=true)", Name(type)), {x});
  return call.g.Cast(x, type);
}

/// A scale or zero point of one number per index of an axis, with axes of extent 1 behind.
Value AlongAxis(OnnxCall& call, Value per_axis, Value x) {
  if (call.Rank(per_axis) != 1 || call.Size(per_axis, 0) == 1) return call.Reshape(per_axis, {});
  const int64_t axis = call.Axis(call.Whole("axis", 1), call.Rank(x));
  Integers sizes(static_cast<size_t>(call.Rank(x) - axis), 1);
  sizes[0] = call.Size(per_axis, 0);
  return call.Reshape(per_axis, sizes);
}

bool IsBlocked(OnnxCall& call) {
  if (call.Whole("block_size", 0) == 0) return false;
  call.Unsupported("quantisation by blocks");
  return true;
}

}  // namespace

std::vector<Value> Elementwise(OnnxCall& call, std::string_view text) {
  return {call.g.Map(WithAttributes(call, text), call.AllInputs())};
}

std::vector<Value> Variadic(OnnxCall& call, std::string_view text) {
  Value y = call.In(0);
  for (size_t i = 1; i < call.inputs(); ++i)
    y = call.g.Map(text == "mean" ? "a + b" : text, {y, call.In(i)});
  if (text == "mean") y = call.g.Map(fmt::format("a / {}", call.inputs()), {y});
  return {y};
}

std::vector<Value> Same(OnnxCall& call, std::string_view) { return {call.In(0)}; }

std::vector<Value> Convert(OnnxCall& call, std::string_view text) {
  const Value x = call.In(0);
  if (text == "like") return {Converted(call, x, call.TypeOf(call.In(1)))};
  const auto type = OnnxDType(call.Whole("to", 0));
  if (!type)
    return {call.Unsupported(fmt::format("a conversion to the type {}", call.Whole("to", 0)))};
  return {Converted(call, x, *type)};
}

/// The limits are inputs from operator set 11 on, attributes before.
std::vector<Value> Clip(OnnxCall& call, std::string_view) {
  Value x = call.In(0);
  const auto limit = [&](size_t input, const char* name) -> std::optional<Value> {
    if (call.Has(input)) return call.Reshape(call.In(input), {});
    if (!call.HasAttribute(name)) return std::nullopt;
    return call.g.Scalar(call.TypeOf(x), call.Real(name, 0));
  };
  if (const auto low = limit(1, "min")) x = call.g.Map("select(a < b, b, a)", {x, *low});
  if (const auto high = limit(2, "max")) x = call.g.Map("select(a > b, b, a)", {x, *high});
  return {x};
}

/// The result has the base's type.
std::vector<Value> Power(OnnxCall& call, std::string_view) {
  const Value base = call.In(0);
  const DType type = call.TypeOf(base);
  const DType computed = IsFloat(type) ? type : DType::kFloat64;
  const Value y = call.g.Map("pow(a, b)",
                             {call.g.Cast(base, computed), call.g.Cast(call.In(1), computed)});
  return {call.g.Cast(y, type)};
}

std::vector<Value> Divide(OnnxCall& call, std::string_view) {
  const bool real = IsFloat(call.TypeOf(call.In(0)));
  return {call.g.Map(real ? "a / b" : kTruncatedQuotient, {call.In(0), call.In(1)})};
}

std::vector<Value> Modulo(OnnxCall& call, std::string_view) {
  const Value a = call.In(0);
  const Value b = call.In(1);
  if (call.Whole("fmod", 0) == 0) return {call.g.Map("mod(a, b)", {a, b})};
  if (IsFloat(call.TypeOf(a))) return {call.g.Map("fmod(a, b)", {a, b})};
  return {call.g.Map("a - b * c", {a, b, call.g.Map(kTruncatedQuotient, {a, b})})};
}

std::vector<Value> BitShift(OnnxCall& call, std::string_view) {
  const bool left = call.Text("direction", "") == "LEFT";
  return {call.g.Map(left ? "a << b" : "a >> b", {call.In(0), call.In(1)})};
}

std::vector<Value> IsInfinite(OnnxCall& call, std::string_view) {
  const bool negative = call.Whole("detect_negative", 1) != 0;
  const bool positive = call.Whole("detect_positive", 1) != 0;
  const char* body = negative && positive ? "isinf(a)"
                     : negative           ? "isinf(a) & (a < 0)"
                     : positive           ? "isinf(a) & (a > 0)"
                                          : "isinf(a) & (a != a)";
  return {call.g.Map(body, {call.In(0)})};
}

std::vector<Value> Gelu(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const bool tanh = call.Text("approximate", "none") == "tanh";
  return {call.Library(tanh ? "gelu_tanh" : "gelu", call.TypeOf(x), {x})};
}

/// In inference nothing is dropped; the mask is true everywhere.
std::vector<Value> Dropout(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  if (call.Has(2)) {
    const auto trains = call.Known(2);
    const bool off = trains && trains->cells.size() == 1 && trains->cells[0].whole == 0;
    const double ratio = !off && call.Has(1) ? call.Number(1) : 0.5;
    if (!off && ratio != 0)
      return {call.Unsupported("dropout in training draws random numbers",
                               "export the model in inference")};
  }
  return {x, call.Filled(call.SizesOf(x), DType::kBool, 1)};
}

/// y = saturate(round(x / scale) + zero point).
std::vector<Value> Quantize(OnnxCall& call, std::string_view) {
  if (IsBlocked(call)) return {};
  const Value x = call.In(0);
  const Value scale = call.g.Cast(AlongAxis(call, call.In(1), x), call.TypeOf(x));
  const auto stated = OnnxDType(call.Whole("output_dtype", 0));
  const DType type = call.Has(2) ? call.TypeOf(call.In(2)) : stated.value_or(DType::kUInt8);
  const Value quotient = call.g.Map("a / b", {x, scale});
  if (IsFloat(type)) return {Converted(call, quotient, type)};
  Value y = call.g.Map("round(a)", {quotient});
  if (call.Has(2)) {
    const Value zero = call.g.Cast(AlongAxis(call, call.In(2), x), call.TypeOf(y));
    y = call.g.Map("a + b", {y, zero});
  }
  return {call.Saturated(y, type)};
}

/// uint8 with a scale that covers the range of x and 0.
std::vector<Value> DynamicQuantize(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  Integers axes(static_cast<size_t>(call.Rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  const Value low = call.g.Map("minimum(0, a)", {call.g.Reduce(graph::Combine::kMin, x, axes)});
  const Value high = call.g.Map("maximum(0, a)", {call.g.Reduce(graph::Combine::kMax, x, axes)});
  const Value scale = call.g.Map("(b - a) / 255", {low, high});
  const Value zero = call.g.Map("round(maximum(0, minimum(255, -a / b)))", {low, scale});
  const Value y = call.g.Map("round(a / b) + c", {x, scale, zero});
  return {call.Saturated(y, DType::kUInt8), scale, call.g.Cast(zero, DType::kUInt8)};
}

std::vector<Value> Dequantize(OnnxCall& call, std::string_view) {
  if (IsBlocked(call)) return {};
  const Value x = call.In(0);
  const Value scale = AlongAxis(call, call.In(1), x);
  const DType type = call.TypeOf(scale);
  if (!call.Has(2) || IsFloat(call.TypeOf(x)))
    return {call.g.Map("a * b", {call.g.Cast(x, type), scale})};
  const Value zero = AlongAxis(call, call.In(2), x);
  const Value distance = call.g.Map(
      "a - b", {call.g.Cast(x, DType::kInt32), call.g.Cast(zero, DType::kInt32)});
  return {call.g.Map("a * b", {call.g.Cast(distance, type), scale})};
}

}  // namespace atunner::importers::onnx
