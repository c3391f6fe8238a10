// Sums of products of 8-bit floats, as Hopper's wgmma makes them in float32 (measured bit by bit):
// C and the products of one instruction are cut off towards zero 13 digits below the largest power
// of two among them, a product's being the sum of its factors' exponent fields, and so is what
// comes of it.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "atunner/vgpu/instructions/product.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using Eight = float __attribute__((vector_size(32), aligned(4), may_alias));
using Words = int32_t __attribute__((vector_size(32), aligned(4), may_alias));

constexpr int kMantissa = 23;
constexpr int32_t kExponents = 0x7f800000;
constexpr int kDigits = 13;
constexpr int32_t kLeastPower = 64;  // biased exponent; smaller values do not change any sum
constexpr int32_t kMostPower = 254;
constexpr Words kUnits = Words{} +
                         static_cast<int32_t>(uint32_t{kMostPower + kDigits} << kMantissa);
constexpr int32_t kKept = ~((1 << (kMantissa - kDigits)) - 1);

/// The power of two of a factor; 0 of zero.
float PowerOf(float x, int least) {
  const auto power = static_cast<int32_t>(std::bit_cast<uint32_t>(x)) & kExponents;
  return x == 0 ? 0 : std::bit_cast<float>(std::max(power, least << kMantissa));
}
void PowersOf(const float* from, int count, int least, std::vector<float>& to) {
  to.resize(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) to[static_cast<size_t>(i)] = PowerOf(from[i], least);
}

void Raise(Words& a, const Words& b) { a = a > b ? a : b; }
void Cut(Eight& x) { x = __builtin_convertvector(__builtin_convertvector(x, Words), Eight); }

/// One row of A with eight columns of B, whose rows are `n` apart.
struct Row {
  const float* a;
  const float* a_powers;
  const float* b;
  const float* b_powers;
  int n, k;
  float sign;
};

/// c becomes the sum.
void AddProducts(const Row& r, Eight& c) {
  Eight largest{};
  Eight plain = c;
  for (int k = 0; k < r.k; ++k) {
    if (IsAbsent(r.a[k])) continue;
    const Eight power = r.a_powers[k] * *reinterpret_cast<const Eight*>(r.b_powers + k * r.n);
    largest = power > largest ? power : largest;
    plain += r.sign * r.a[k] * *reinterpret_cast<const Eight*>(r.b + k * r.n);
  }
  Words power = __builtin_bit_cast(Words, c) & kExponents;
  Raise(power, __builtin_bit_cast(Words, largest));
  Raise(power, Words{} + (kLeastPower << kMantissa));
  const Words most = Words{} + (kMostPower << kMantissa);
  power = power > most ? most : power;
  const Eight unit = __builtin_bit_cast(Eight, power - (kDigits << kMantissa));
  const Eight per_unit = __builtin_bit_cast(Eight, kUnits - power);
  Eight sum = c * per_unit;
  Cut(sum);
  for (int k = 0; k < r.k; ++k) {
    if (IsAbsent(r.a[k])) continue;
    Eight product = r.sign * r.a[k] * *reinterpret_cast<const Eight*>(r.b + k * r.n) * per_unit;
    Cut(product);
    sum += product;
  }
  const Eight cut = __builtin_bit_cast(Eight, __builtin_bit_cast(Words, sum * unit) & kKept);
  c = plain - plain == 0 ? cut : plain;  // infinities and NaNs
}

}  // namespace

void MultiplyTileOfFp8(const TileProduct& p) {
  static thread_local std::vector<float> a_powers;
  static thread_local std::vector<float> b_powers;
  PowersOf(p.a, p.m * p.k, p.least_a, a_powers);
  PowersOf(p.b, p.n * p.k, p.least_b, b_powers);
  for (int row = 0; row < p.m; ++row) {
    const size_t first = static_cast<size_t>(row / 16) * p.RegistersPerWarp() +
                         2 * static_cast<size_t>(row % 16 / 8);
    const int lane = 4 * (row % 8);
    for (int block = 0; block < p.n / 8; ++block) {
      const size_t at = first + 4 * static_cast<size_t>(block);  // even columns, then odd ones
      Eight c{};
      for (size_t e = 0; p.add && e < 2; ++e)
        std::memcpy(reinterpret_cast<float*>(&c) + 4 * e, p.c[at + e] + lane, 4 * sizeof(float));
      const size_t row_of_a = static_cast<size_t>(row) * static_cast<size_t>(p.k);
      const Row r{p.a + row_of_a,
                  a_powers.data() + row_of_a,
                  p.b + 8 * block,
                  b_powers.data() + 8 * block,
                  p.n,
                  p.k,
                  p.subtract ? -1.0f : 1.0f};
      AddProducts(r, c);
      for (size_t e = 0; e < 2; ++e)
        std::memcpy(p.d[at + e] + lane, reinterpret_cast<const float*>(&c) + 4 * e,
                    4 * sizeof(float));
    }
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
