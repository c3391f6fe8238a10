// The type of a value in a graph: an element type and a shape. An extent is a number or a number
// times symbols; a symbol is a size of which only the range is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/value/dtype.h"
#include "atunner/model/value/value.h"

namespace atunner::graph {

/// A size along one axis, at least 1: a number times symbols ("4096", "B", "8*B"). Two extents are
/// equal if and only if their texts are equal.
class Extent {
 public:
  Extent(int64_t constant = 1)
      : factor_(constant) {}  // NOLINT(google-explicit-constructor): shapes read like numbers
  static Extent Symbol(std::string name);

  int64_t factor() const { return factor_; }
  const std::vector<std::string>& symbols() const { return symbols_; }
  bool constant() const { return symbols_.empty(); }
  bool one() const { return constant() && factor_ == 1; }

  /// Saturates at the largest int64.
  Extent operator*(const Extent& other) const;
  /// The extent e with e * other == *this, if there is one.
  std::optional<Extent> Divided(const Extent& other) const;
  bool operator==(const Extent&) const = default;
  /// Replaces symbols by their values; symbols without a value stay.
  Extent Bound(const Dims& values) const;
  std::string ToString() const;

 private:
  int64_t factor_ = 1;
  std::vector<std::string> symbols_;  ///< sorted, with repetition
};

using Shape = std::vector<Extent>;

/// The values that a symbol may take, both ends included.
struct Range {
  int64_t low = 1;
  int64_t high = 1;
  bool operator==(const Range&) const = default;
};
using Symbols = std::map<std::string, Range, std::less<>>;

struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;

  size_t rank() const { return shape.size(); }
  bool operator==(const TensorType&) const = default;
  /// "float32[B, 4096]"; a scalar is "float32[]".
  std::string ToString() const;
};

Extent ElementCount(const Shape& shape);
/// The element count as an expression for kernels and launches: "4096*rows".
std::string CountText(const Shape& shape);
std::string ToString(const Shape& shape);
/// NumPy's rule: shapes are aligned at their last axes; an extent of 1 stretches, others must be
/// equal. nullopt where they are not.
std::optional<Shape> Broadcast(const Shape& a, const Shape& b);
/// True if a value of shape `from` can be broadcast to exactly the shape `to`.
bool BroadcastsTo(const Shape& from, const Shape& to);

/// True for integer types, false for floats and bool.
inline bool IsWhole(DType dtype) { return !IsFloat(dtype) && KindOf(dtype) != DTypeKind::kBool; }
/// The type in which arithmetic on `dtype` takes place: float32 for narrower floats.
inline DType ArithmeticType(DType dtype) {
  return IsFloat(dtype) && SizeOf(dtype) < 4 ? DType::kFloat32 : dtype;
}

/// One element: `real` of float types, `whole` of integers and of bool (0 or 1).
union Cell {
  double real;
  int64_t whole;
};
inline Cell Real(double value) { return {.real = value}; }
inline Cell Whole(int64_t value) { return {.whole = value}; }
/// `value` as an element of `dtype`.
Cell CellOf(DType dtype, double value);
double ToReal(DType dtype, Cell cell);
/// Rounds a float to the nearest of its type, wraps an integer to its width.
Cell Rounded(DType dtype, Cell cell);

}  // namespace atunner::graph
