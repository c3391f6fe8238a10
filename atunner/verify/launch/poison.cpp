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

uint64_t IntegerBits(int bits, uint64_t random, uint64_t rest, uint64_t flip) {
  const uint64_t all = ~uint64_t{0} >> (64 - bits);
  const uint64_t kept = (random & 0xc) != 0 ? all & ~uint64_t{1} : 0x7e;
  return ((rest >> (64 - bits)) & kept) | ((random & 1) ^ flip);
}

uint64_t FloatBits(int bits, int mantissa, uint64_t random, uint64_t rest, uint64_t flip) {
  const int most = (1 << (bits - 1 - mantissa)) - 2;
  const int bias = most / 2;
  const int ordinary = std::min(bias - 1, 12);
  const auto kind = random & 3;
  const int low = kind < 2 ? bias + bias / 2 : kind == 2 ? bias - ordinary : 1;
  const int high = kind == 2 ? bias + ordinary : most;
  const uint64_t exponent = static_cast<uint64_t>(low) +
                            ((rest >> 48) * static_cast<uint64_t>(high - low + 1) >> 16);
  const uint64_t sign = ((random >> 2) & 1) ^ flip;
  return sign << (bits - 1) | exponent << mantissa | (rest & ((uint64_t{1} << mantissa) - 1));
}

}  // namespace

void WritePoison(const Poison& poison, DType dtype, uint64_t first, std::span<std::byte> memory) {
  const size_t size = SizeOf(dtype);
  const int bits = static_cast<int>(size) * 8;
  const uint64_t start = Mix64(poison.key) + first;
  const uint64_t flip = poison.flipped ? 1 : 0;
  for (uint64_t i = 0; (i + 1) * size <= memory.size(); ++i) {
    const uint64_t random = Mix64(start + i);
    const uint64_t rest = Mix64(random + flip);
    const uint64_t value = IsFloat(dtype) ? FloatBits(bits, MantissaBits(dtype), random, rest, flip)
                                          : IntegerBits(bits, random, rest, flip);
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
