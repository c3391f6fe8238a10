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

}  // namespace atunner::importers
