#include "atunner/importers/aten/graph_call.h"

#include <utility>

namespace atunner::importers {

using graph::Shape;
using graph::Value;

int64_t CountOf(const Integers& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || __builtin_mul_overflow(count, size, &count)) return 0;
  }
  return count;
}

Integers GraphCall::SizesOf(Value x) const {
  Integers sizes;
  for (const graph::Extent& extent : ShapeOf(x)) sizes.push_back(extent.factor());
  return sizes;
}

int64_t GraphCall::Size(Value x, int64_t axis) const {
  return axis >= 0 && axis < Rank(x) ? ShapeOf(x)[static_cast<size_t>(axis)].factor() : 1;
}

Value GraphCall::Reshape(Value x, const Integers& sizes) {
  return g.Reshape(x, Shape(sizes.begin(), sizes.end()));
}

Value GraphCall::Broadcast(Value x, const Integers& sizes) {
  return g.Map("a", {x}, Shape(sizes.begin(), sizes.end()));
}

Value GraphCall::Filled(const Integers& sizes, DType dtype, double value) {
  return g.Constant({dtype, Shape(sizes.begin(), sizes.end())}, {graph::CellOf(dtype, value)});
}

Value GraphCall::Fail(std::string what, std::string hint) {
  return g.Fail({ErrorCode::kInvalidInput, std::move(what), {}, std::move(hint)});
}

bool GraphCall::Check(bool condition, const std::string& what, const std::string& hint) {
  if (!condition) Fail(what, hint);
  return condition;
}

}  // namespace atunner::importers
