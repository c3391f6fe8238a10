// Operators that make tensors of nothing, or of sizes.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Value;

constexpr double kMostElements = 1 << 20;

Value AsConstant(OnnxCall& call, const OnnxTensor& tensor) {
  const auto values = ValuesOf(tensor, "");
  if (values) return ConstantOf(call.g, *values);
  return call.g.Fail(values.error());
}

}  // namespace

std::vector<Value> ConstantNode(OnnxCall& call, std::string_view) {
  if (const auto* value = call.Find("value"); value != nullptr && value->tensor) {
    const auto dtype = OnnxDType(value->tensor->data_type);
    // Resize of operator set 11 has such for regions and scales that it does not use.
    if (dtype && value->tensor->dims == Integers{0}) return call.NoElements(*dtype);
    return {AsConstant(call, *value->tensor)};
  }
  if (call.HasAttribute("value_int"))
    return {call.Constant(DType::kInt64, {}, {call.Whole("value_int", 0)})};
  if (call.HasAttribute("value_float"))
    return {call.Filled({}, DType::kFloat32, call.Real("value_float", 0))};
  if (const auto* ints = call.Find("value_ints"); ints != nullptr && !ints->wholes.empty())
    return {
        call.Constant(DType::kInt64, {static_cast<int64_t>(ints->wholes.size())}, ints->wholes)};
  if (const auto* reals = call.Find("value_floats"); reals != nullptr && !reals->reals.empty())
    return {ConstantOf(
        call.g, graph::Tensor::Of(DType::kFloat32, {static_cast<int64_t>(reals->reals.size())},
                                  reals->reals))};
  return {call.Unsupported("a constant of text, of a sparse tensor, or without elements")};
}

std::vector<Value> ConstantOfShape(OnnxCall& call, std::string_view) {
  const Integers sizes = call.Wholes(0);
  const auto* value = call.Find("value");
  if (value == nullptr || !value->tensor) return {call.Filled(sizes, DType::kFloat32, 0)};
  const Value one = AsConstant(call, *value->tensor);
  return {call.Broadcast(call.Reshape(one, {}), sizes)};
}

std::vector<Value> Range(OnnxCall& call, std::string_view) {
  const double start = call.Number(0);
  const double limit = call.Number(1);
  const double step = call.Number(2);
  const auto type = call.Known(0);
  if (!call.g.ok() || !type) return {};
  const double count = std::ceil((limit - start) / step);
  if (!call.Check(count >= 1 && count <= kMostElements, "a range without elements, or too long"))
    return {};
  std::vector<double> values;
  for (double i = 0; i < count; ++i) values.push_back(start + i * step);
  return {
      ConstantOf(call.g, graph::Tensor::Of(type->dtype, {static_cast<int64_t>(count)}, values))};
}

std::vector<Value> EyeLike(OnnxCall& call, std::string_view) {
  const Value x = call.In(0);
  const Integers sizes = call.SizesOf(x);
  if (!call.Check(sizes.size() == 2, "EyeLike of a tensor that is no matrix")) return {};
  const DType type = OnnxDType(call.Whole("dtype", 0)).value_or(call.TypeOf(x));
  const Value y = call.g.Map(fmt::format("index(-1) == index(-2) + {}", call.Whole("k", 0)), {},
                             graph::Shape(sizes.begin(), sizes.end()));
  return {call.g.Cast(y, type)};
}

/// A cosine window: a - b · cos(2πi/n) + c · cos(4πi/n).
std::vector<Value> SignalWindow(OnnxCall& call, std::string_view text) {
  const double size = call.Number(0);
  if (!call.Check(size >= 2 && size <= kMostElements, "a window of this size")) return {};
  const double n = call.Whole("periodic", 1) != 0 ? size : size - 1;
  const double a = text == "hann" ? 0.5 : text == "hamming" ? 25.0 / 46 : 0.42;
  const double b = text == "hann" ? 0.5 : text == "hamming" ? 21.0 / 46 : 0.5;
  const double c = text == "blackman" ? 0.08 : 0;
  std::vector<double> values;
  for (double i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * i / n;
    values.push_back(a - b * std::cos(angle) + c * std::cos(2 * angle));
  }
  const DType type = OnnxDType(call.Whole("output_datatype", 1)).value_or(DType::kFloat32);
  return {ConstantOf(call.g, graph::Tensor::Of(type, {static_cast<int64_t>(size)}, values))};
}

/// The new axis has the second value at the index, and the first elsewhere.
std::vector<Value> OneHot(OnnxCall& call, std::string_view) {
  const Value indices = call.g.Cast(call.In(0), DType::kInt64);
  const auto depth = static_cast<int64_t>(call.Number(1));
  const Value values = call.In(2);
  const int64_t axis = call.Axis(call.Whole("axis", -1), call.Rank(indices) + 1);
  if (!call.Check(depth >= 1, "a depth below 1")) return {};
  Integers sizes = call.SizesOf(indices);
  sizes.insert(sizes.begin() + axis, 1);
  const Value places = call.Reshape(indices, sizes);
  sizes[static_cast<size_t>(axis)] = depth;
  const int64_t from_end = axis - static_cast<int64_t>(sizes.size());
  const Value off = call.Reshape(call.SliceOf(values, 0, 0, 1), {});
  const Value on = call.Reshape(call.SliceOf(values, 0, 1, 2), {});
  return {call.g.Map(
      fmt::format("select(select(a < 0, a + {}, a) == index({}), b, c)", depth, from_end),
      {places, on, off}, graph::Shape(sizes.begin(), sizes.end()))};
}

}  // namespace atunner::importers::onnx
