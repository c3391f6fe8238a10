// Tensors of constants.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "atunner/graph/expression_text.h"
#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Value;

double FillOf(AtenCall& call, std::string_view text) {
  return text.empty() ? call.Real("fill_value") : std::stod(std::string(text));
}

DType TypeAsked(AtenCall& call, DType fallback) {
  return call.Has("dtype") ? call.Type("dtype") : call.ResultType(fallback);
}

}  // namespace

std::vector<Value> Full(AtenCall& call, std::string_view text) {
  return {call.Filled(call.Wholes("size"), TypeAsked(call, DType::kFloat32), FillOf(call, text))};
}

std::vector<Value> FullLike(AtenCall& call, std::string_view text) {
  const Value x = call.Tensor("self");
  const Integers sizes = call.Has("size") ? call.Wholes("size") : call.SizesOf(x);
  return {call.Filled(sizes, TypeAsked(call, call.TypeOf(x)), FillOf(call, text))};
}

std::vector<Value> Arange(AtenCall& call, std::string_view) {
  const double start = call.Has("start") ? call.Real("start") : 0;
  const double end = call.Real("end");
  const double step = call.Has("step") ? call.Real("step") : 1;
  const double count = std::ceil((end - start) / step);
  if (!call.Check(step != 0 && count >= 1 && count < 1e12, "the range has no elements")) return {};
  const DType type = TypeAsked(call, DType::kInt64);
  const std::string body = fmt::format("cast(cast(index(-1), float64) * ({}) + ({}), {})",
                                       graph::PrintNumber(step), graph::PrintNumber(start),
                                       Name(type));
  return {call.g.Map(body, {}, {graph::Extent(static_cast<int64_t>(count))})};
}

std::vector<Value> ScalarTensor(AtenCall& call, std::string_view) {
  return {call.Filled({}, TypeAsked(call, DType::kFloat32), call.Real("s"))};
}

/// atunner.uniform of faces/python/atunner/_random.py: Philox4x32-10 with the key (seed, count) and
/// the counter (row-major number of the element, stream), 32 bits each.
std::vector<Value> Uniform(AtenCall& call, std::string_view) {
  const Value seed = call.g.Cast(call.Tensor("seed"), DType::kInt64);
  const Value count = call.g.Cast(call.Tensor("count"), DType::kInt64);
  std::vector<graph::Extent> shape;
  for (const int64_t size : call.Wholes("size")) shape.emplace_back(size);
  std::string place = "0";
  for (size_t axis = shape.size(); axis > 0; --axis)
    place = fmt::format("({} * extent(-{}) + index(-{}))", place, axis, axis);
  const int64_t stream = call.Whole("stream") << 32;
  const std::string body = fmt::format(
      "uniform(b * cast({0}, int64) + (a & cast({1}, int64)), cast({2}, int64) + {3})",
      int64_t{1} << 32, (int64_t{1} << 32) - 1, stream, place);
  return {call.g.Map(body, {seed, count}, shape)};
}

}  // namespace atunner::importers
