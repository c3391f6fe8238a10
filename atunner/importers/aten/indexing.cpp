// Operators with indices.
#include <fmt/format.h>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Value;

/// The elements of x at `places`, which has x's shape but for the axis `axis`: axes in front of it
/// go together, and so do those behind it after they were moved to the front.
Value Gathered(AtenCall& call, Value x, Value places, int64_t axis) {
  const auto rank = static_cast<int64_t>(call.ShapeOf(x).size());
  Integers order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  const bool last = axis == rank - 1;
  const Value from = last ? x : call.g.Transpose(x, order);
  const Value at = last ? places : call.g.Transpose(places, order);
  const Value y = call.g.Add(graph::Gather{rank - 1, rank - 1}, {from, at});
  if (last) return y;
  Integers back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return call.g.Transpose(y, back);
}

Value Places(AtenCall& call, std::string_view name) {
  return call.g.Cast(call.Tensor(name), DType::kInt64);
}

}  // namespace

std::vector<Value> Embedding(AtenCall& call, std::string_view) {
  return {call.g.Add(graph::Gather{0, 0}, {call.Tensor("weight"), Places(call, "indices")})};
}

std::vector<Value> IndexSelect(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  return {call.g.Add(graph::Gather{call.Axis("dim", x), 0}, {x, Places(call, "index")})};
}

std::vector<Value> GatherAlong(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const Value places = Places(call, "index");
  const int64_t axis = call.Axis("dim", x);
  Integers sizes = call.SizesOf(x);
  if (!call.Check(!sizes.empty() && sizes.size() == call.ShapeOf(places).size(),
                  "the index has another rank than the tensor"))
    return {};
  sizes[static_cast<size_t>(axis)] = call.Size(places, axis);
  if (!call.Check(sizes == call.SizesOf(places), "the index is smaller than the tensor")) return {};
  return {Gathered(call, x, places, axis)};
}

std::vector<Value> SortAlong(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  const Value places = call.g.Add(graph::Sort{axis, call.Flag("descending"), 0}, {x});
  return {Gathered(call, x, places, axis), places};
}

std::vector<Value> TopK(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  const int64_t axis = call.Axis("dim", x);
  const int64_t count = call.Whole("k");
  if (!call.Check(count >= 1 && count <= call.Size(x, axis), fmt::format("k = {}", count)))
    return {};
  const Value places = call.g.Add(graph::Sort{axis, call.Flag("largest"), count}, {x});
  return {Gathered(call, x, places, axis), places};
}

}  // namespace atunner::importers
