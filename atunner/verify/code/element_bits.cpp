#include "atunner/verify/code/element_bits.h"

#include <cmath>
#include <cstring>

namespace atunner {
namespace {

uint64_t LowBits(int count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

/// A float's bits as an integer that grows with the number: two's complement of the magnitude.
int64_t Rank(DType dtype, uint64_t bits) {
  const uint64_t sign = uint64_t{1} << (BitCount(dtype) - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

uint64_t FromRank(DType dtype, int64_t rank) {
  const uint64_t sign = uint64_t{1} << (BitCount(dtype) - 1);
  return rank < 0 ? sign | static_cast<uint64_t>(-rank) : static_cast<uint64_t>(rank);
}

}  // namespace

int BitCount(DType dtype) { return static_cast<int>(8 * SizeOf(dtype)); }

uint64_t ElementBits(DType dtype, double value) {
  uint64_t bits = 0;
  StoreElement(dtype, &bits, 0, value);
  return bits & LowBits(BitCount(dtype));
}

double ElementOf(DType dtype, uint64_t bits) { return LoadElement(dtype, &bits, 0); }

std::optional<uint64_t> Neighbour(DType dtype, uint64_t bits, bool larger) {
  const int count = BitCount(dtype);
  if (IsFloat(dtype)) {
    if (std::isnan(ElementOf(dtype, bits))) return std::nullopt;
    const uint64_t next = FromRank(dtype, Rank(dtype, bits) + (larger ? 1 : -1));
    const bool gone = (next & LowBits(count)) != next || std::isnan(ElementOf(dtype, next));
    return gone ? std::nullopt : std::optional(next);
  }
  const bool is_signed = KindOf(dtype) == DTypeKind::kSigned;
  const uint64_t largest = KindOf(dtype) == DTypeKind::kBool
                               ? 1
                               : LowBits(is_signed ? count - 1 : count);
  const uint64_t smallest = is_signed ? uint64_t{1} << (count - 1) : 0;
  if (bits == (larger ? largest : smallest)) return std::nullopt;
  return (bits + (larger ? 1 : ~uint64_t{0})) & LowBits(count);
}

double LargestBelow(DType dtype, double bound) {
  if (!IsFloat(dtype)) return std::ceil(bound) - 1;
  const uint64_t rounded = ElementBits(dtype, bound);
  const double value = ElementOf(dtype, rounded);
  if (value < bound) return value;
  const auto below = Neighbour(dtype, rounded, false);
  return below ? ElementOf(dtype, *below) : value;
}

}  // namespace atunner
