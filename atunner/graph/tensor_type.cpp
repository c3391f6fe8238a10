#include "atunner/graph/tensor_type.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace atunner::graph {
namespace {

int64_t SaturatingProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

template <class T>
Cell Wrapped(int64_t value) {
  return Whole(static_cast<int64_t>(static_cast<T>(value)));
}

}  // namespace

Extent Extent::Symbol(std::string name) {
  Extent extent(1);
  extent.symbols_.push_back(std::move(name));
  return extent;
}

Extent Extent::operator*(const Extent& other) const {
  Extent product(SaturatingProduct(factor_, other.factor_));
  std::ranges::merge(symbols_, other.symbols_, std::back_inserter(product.symbols_));
  return product;
}

std::optional<Extent> Extent::Divided(const Extent& other) const {
  if (other.factor_ == 0 || factor_ % other.factor_ != 0) return std::nullopt;
  if (!std::ranges::includes(symbols_, other.symbols_)) return std::nullopt;
  Extent quotient(factor_ / other.factor_);
  std::ranges::set_difference(symbols_, other.symbols_, std::back_inserter(quotient.symbols_));
  return quotient;
}

Extent Extent::Bound(const Dims& values) const {
  Extent bound(factor_);
  for (const std::string& symbol : symbols_) {
    const auto at = values.find(symbol);
    if (at == values.end())
      bound.symbols_.push_back(symbol);
    else
      bound.factor_ = SaturatingProduct(bound.factor_, at->second);
  }
  return bound;
}

std::string Extent::ToString() const {
  std::string text = factor_ == 1 && !constant() ? "" : std::to_string(factor_);
  for (const std::string& symbol : symbols_) text += (text.empty() ? "" : "*") + symbol;
  return text;
}

std::string CountText(const Shape& shape) { return ElementCount(shape).ToString(); }

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (const Extent& extent : shape) text += (text.size() > 1 ? ", " : "") + extent.ToString();
  return text + "]";
}

std::string TensorType::ToString() const {
  return std::string(Name(dtype)) + graph::ToString(shape);
}

Extent ElementCount(const Shape& shape) {
  Extent count(1);
  for (const Extent& extent : shape) count = count * extent;
  return count;
}

std::optional<Shape> Broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Extent& extent = result[lead + i];
    if (shorter[i] == extent || shorter[i].one()) continue;
    if (!extent.one()) return std::nullopt;
    extent = shorter[i];
  }
  return result;
}

bool BroadcastsTo(const Shape& from, const Shape& to) {
  const auto both = Broadcast(from, to);
  return both && *both == to;
}

Cell CellOf(DType dtype, double value) {
  if (IsFloat(dtype)) return Real(value);
  if (KindOf(dtype) == DTypeKind::kBool) return Whole(value != 0);
  // Beyond int64 the conversion is undefined in C++; GPUs saturate.
  if (std::isnan(value)) return Whole(0);
  if (value >= 0x1p63) return Rounded(dtype, Whole(std::numeric_limits<int64_t>::max()));
  if (value < -0x1p63) return Rounded(dtype, Whole(std::numeric_limits<int64_t>::min()));
  return Rounded(dtype, Whole(static_cast<int64_t>(value)));
}

double ToReal(DType dtype, Cell cell) {
  return IsFloat(dtype) ? cell.real : static_cast<double>(cell.whole);
}

Cell Rounded(DType dtype, Cell cell) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64:
      return cell;
    case DType::kFloat32:
      return Real(static_cast<float>(cell.real));
    case DType::kInt8:
      return Wrapped<int8_t>(cell.whole);
    case DType::kInt16:
      return Wrapped<int16_t>(cell.whole);
    case DType::kInt32:
      return Wrapped<int32_t>(cell.whole);
    case DType::kUInt8:
      return Wrapped<uint8_t>(cell.whole);
    case DType::kUInt16:
      return Wrapped<uint16_t>(cell.whole);
    case DType::kUInt32:
      return Wrapped<uint32_t>(cell.whole);
    case DType::kBool:
      return Whole(cell.whole != 0);
    default: {
      uint16_t bits = 0;
      StoreElement(dtype, &bits, 0, cell.real);
      return Real(LoadElement(dtype, &bits, 0));
    }
  }
}

}  // namespace atunner::graph
