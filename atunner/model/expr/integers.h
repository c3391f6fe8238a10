// Arithmetic of integers in expressions, as Python has it.
#pragma once

#include <cstdint>
#include <optional>

namespace atunner {

/// The quotient rounded towards minus infinity, as Python's `//`. `b` is not 0; with `b` = -1, `a`
/// is not the smallest integer.
constexpr int64_t FloorDivide(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// `base` to the power of `exponent` >= 0; nothing where 64 bits do not hold it.
constexpr std::optional<int64_t> IntegerPower(int64_t base, int64_t exponent) {
  if (base == -1) return exponent % 2 != 0 ? -1 : 1;
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
    if (result == 0 || result == 1) break;  // so do all that follow
  }
  return result;
}

}  // namespace atunner
