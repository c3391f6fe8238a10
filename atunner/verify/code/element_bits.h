// Elements of any type as bits, and the next number of the type on either side.
#pragma once

#include <cstdint>
#include <optional>

#include "atunner/model/value/dtype.h"

namespace atunner {

/// The bits of `value` in the type, as StoreElement makes them, in the low bits of a word.
uint64_t ElementBits(DType dtype, double value);
/// LoadElement of such bits.
double ElementOf(DType dtype, uint64_t bits);

/// The next larger (or smaller) number of the type; nullopt beyond its largest (smallest) number
/// and for a NaN. A float's zero has the smallest subnormal numbers beside it. Infinity follows the
/// largest float where the type has one.
std::optional<uint64_t> Neighbour(DType dtype, uint64_t bits, bool larger);

/// The largest number of the type that is below `bound`; for integers any `bound` within
/// the type's range.
double LargestBelow(DType dtype, double bound);

/// Bits of one element: 32 of a float32.
int BitCount(DType dtype);

}  // namespace atunner
