#include "atunner/verify/launch/poison.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "atunner/base/random.h"

namespace atunner {
namespace {

/// Bits of a type's mantissa.
int MantissaBits(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 52;
    case DType::kFloat16:
      return 10;
    case DType::kBFloat16:
      return 7;
    case DType::kFloat8E4M3:
      return 3;
    case DType::kFloat8E5M2:
      return 2;
    default:
      return 23;
  }
}

/// A mixer of 32 bits, as kernels/judge/judge.cu has it.
uint32_t Mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

/// The random bits of an element: what kind of number it is, and its digits, which begin at the
/// top.
struct PoisonDraw {
  uint64_t kind = 0, digits = 0;
};

PoisonDraw Draw(size_t size, uint64_t index, uint64_t mixed_key, uint64_t flip) {
  if (size == sizeof(uint64_t)) {
    const uint64_t kind = Mix64(mixed_key + index);
    return {kind, Mix64(kind + flip)};
  }
  const auto low = static_cast<uint32_t>(mixed_key), high = static_cast<uint32_t>(mixed_key >> 32);
  const uint32_t at = (static_cast<uint32_t>(index) + low) ^
                      static_cast<uint32_t>(index >> 32) * 0x9e3779b9U;
  const uint32_t kind = Mix32(at);
  return {kind, uint64_t{Mix32((kind ^ high) + static_cast<uint32_t>(flip))} << 32};
}

uint64_t IntegerBits(int bits, const PoisonDraw& draw, uint64_t flip) {
  const uint64_t all = ~uint64_t{0} >> (64 - bits);
  const uint64_t kept = (draw.kind & 0xc) != 0 ? all & ~uint64_t{1} : 0x7e;
  return ((draw.digits >> (64 - bits)) & kept) | ((draw.kind & 1) ^ flip);
}

uint64_t FloatBits(int bits, int mantissa, const PoisonDraw& draw, uint64_t flip) {
  const int most = (1 << (bits - 1 - mantissa)) - 2;
  const int bias = most / 2;
  const int ordinary = std::min(bias - 1, 12);
  const auto kind = draw.kind & 3;
  const int low = kind < 2 ? bias + bias / 2 : kind == 2 ? bias - ordinary : 1;
  const int high = kind == 2 ? bias + ordinary : most;
  const uint64_t exponent = static_cast<uint64_t>(low) +
                            ((draw.digits >> 48) * static_cast<uint64_t>(high - low + 1) >> 16);
  const uint64_t fraction = (draw.digits >> (bits == 64 ? 0 : 32)) &
                            ((uint64_t{1} << mantissa) - 1);
  const uint64_t sign = ((draw.kind >> 2) & 1) ^ flip;
  return sign << (bits - 1) | exponent << mantissa | fraction;
}

}  // namespace

void WritePoison(const Poison& poison, DType dtype, uint64_t first, std::span<std::byte> memory) {
  const size_t size = SizeOf(dtype);
  const int bits = static_cast<int>(size) * 8;
  const uint64_t key = Mix64(poison.key);
  const uint64_t flip = poison.flipped ? 1 : 0;
  for (uint64_t i = 0; (i + 1) * size <= memory.size(); ++i) {
    const PoisonDraw draw = Draw(size, first + i, key, flip);
    const uint64_t value = IsFloat(dtype) ? FloatBits(bits, MantissaBits(dtype), draw, flip)
                                          : IntegerBits(bits, draw, flip);
    std::memcpy(&memory[i * size], &value, size);
  }
}

uint64_t SecretBits() {
  std::random_device entropy;
  return (uint64_t{entropy()} << 32) ^ entropy();
}

Poison Poison::Fresh() { return {SecretBits(), false}; }

Poison Poison::Of(uint64_t position) const { return {Mix64(key + Mix64(position)), flipped}; }

}  // namespace atunner
