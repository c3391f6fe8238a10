// Operators with indices.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

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

/// x[:, rows, columns] as one gather: the indexed axes of x, their indices, and where the axes of
/// the indices go in the result.
struct TensorIndices {
  Integers axes;  ///< ascending
  std::vector<Value> places;
  bool Adjacent() const {
    return axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
  }
};

TensorIndices TensorIndicesOf(AtenCall& call) {
  TensorIndices found;
  const auto given = call.OptionalTensors("indices");
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) continue;
    const DType dtype = call.TypeOf(*given[i]);
    call.Check(dtype != DType::kBool && dtype != DType::kUInt8,
               "a mask selects a number of elements that its values decide",
               "take torch.where instead of a mask as index");
    found.axes.push_back(static_cast<int64_t>(i));
    found.places.push_back(call.g.Cast(*given[i], DType::kInt64));
  }
  return found;
}

/// One index in place of several: into the indexed axes as one. Negative ones count from the end.
Value JoinedPlaces(AtenCall& call, const TensorIndices& indices, const Integers& sizes) {
  Value joined{};
  for (size_t i = 0; i < indices.axes.size(); ++i) {
    const int64_t size = sizes[static_cast<size_t>(indices.axes[i])];
    const Value place = call.g.Map(fmt::format("select(a < 0, a + {}, a)", size),
                                   {indices.places[i]});
    joined = i == 0 ? place : call.g.Map(fmt::format("a * {} + b", size), {joined, place});
  }
  return joined;
}

/// The indexed axes in front, in their order, and then the others.
Integers IndexedFirst(const TensorIndices& indices, int64_t rank) {
  Integers order = indices.axes;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (std::ranges::find(indices.axes, axis) == indices.axes.end()) order.push_back(axis);
  }
  return order;
}

}  // namespace

std::vector<Value> Embedding(AtenCall& call, std::string_view) {
  return {call.g.Add(graph::Gather{0, 0}, {call.Tensor("weight"), Places(call, "indices")})};
}

std::vector<Value> IndexSelect(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("self");
  return {call.g.Add(graph::Gather{call.Axis("dim", x), 0}, {x, Places(call, "index")})};
}

std::vector<Value> IndexByTensors(AtenCall& call, std::string_view) {
  Value x = call.Tensor("self");
  const TensorIndices indices = TensorIndicesOf(call);
  const int64_t rank = call.Rank(x);
  if (!call.Check(!indices.axes.empty() && indices.axes.back() < rank,
                  "the indices have more axes than the tensor, or none"))
    return {};
  const Value places = JoinedPlaces(call, indices, call.SizesOf(x));
  if (!indices.Adjacent()) x = call.g.Transpose(x, IndexedFirst(indices, rank));
  const int64_t first = indices.Adjacent() ? indices.axes.front() : 0;
  const auto count = static_cast<int64_t>(indices.axes.size());
  Integers sizes = call.SizesOf(x);
  for (int64_t axis = first + 1; axis < first + count; ++axis)
    sizes[static_cast<size_t>(first)] *= sizes[static_cast<size_t>(axis)];
  sizes.erase(sizes.begin() + first + 1, sizes.begin() + first + count);
  return {call.g.Add(graph::Gather{first, 0}, {call.Reshape(x, sizes), places})};
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
