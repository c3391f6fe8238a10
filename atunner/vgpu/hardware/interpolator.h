// The unit for special functions of a GPU, bit by bit.
//
// It looks up three coefficients by the upper bits of its argument and adds C0 + C1 X + C2 T(X),
// where X are the 17 bits below and T is their square without the partial products of less than
// 2^19. The sum is cut off, not rounded, to 24 bits. The structure is that of S. Oberman and M.
// Siu, "A High-Performance Area-Efficient Multifunction Interpolator" (ARITH 2005); the widths and
// the coefficients were found from recordings (research/special-functions.md), which they reproduce
// without a difference.
//
// Functions here take and return the bits of float32 numbers. Subnormal arguments are zeros,
// subnormal results become zeros, and every NaN is kNan. They have no branches, so that loops over
// lanes become vectors.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "atunner/vgpu/hardware/interpolator_tables.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

constexpr uint32_t kNan = 0x7fffffff;
constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kMantissa = 0x7fffff;
constexpr uint32_t kOne = 0x3f800000;

/// Segments as float64 numbers, one array for each coefficient.
template <size_t kCount>
struct Coefficients {
  double c0[kCount]{};
  double c1[kCount]{};
  double c2[kCount]{};
  constexpr explicit Coefficients(const Segment (&segments)[kCount]) {
    for (size_t i = 0; i < kCount; ++i) {
      c0[i] = static_cast<double>(segments[i].c0);
      c1[i] = segments[i].c1;
      c2[i] = segments[i].c2;
    }
  }
};
/// Segments whose C1 and C2 have at most 19 and 13 bits, which one load brings: loads of single
/// lanes take most of the time of these functions.
template <size_t kCount>
struct PackedCoefficients {
  static constexpr int kBits = 13;  // of C2
  double c0[kCount]{};
  int32_t c1_and_c2[kCount]{};
  constexpr explicit PackedCoefficients(const Segment (&segments)[kCount]) {
    for (size_t i = 0; i < kCount; ++i) {
      const Segment& s = segments[i];
      c0[i] = static_cast<double>(s.c0);
      c1_and_c2[i] = s.c1 * (1 << kBits) | (s.c2 & ((1 << kBits) - 1));
      if (C1(c1_and_c2[i]) != s.c1 || C2(c1_and_c2[i]) != s.c2) throw "a coefficient is too large";
    }
  }
  static constexpr int32_t C1(int32_t both) { return both >> kBits; }
  static constexpr int32_t C2(int32_t both) {
    return static_cast<int32_t>(static_cast<uint32_t>(both) << (32 - kBits)) >> (32 - kBits);
  }
};
inline constexpr PackedCoefficients kRcp(kRcpSegments);
inline constexpr PackedCoefficients kRsqrt(kRsqrtSegments);
inline constexpr PackedCoefficients kSqrt(kSqrtSegments);
inline constexpr PackedCoefficients kEx2(kEx2Segments);
inline constexpr PackedCoefficients kLg2(kLg2Segments);
inline constexpr Coefficients kSin(kSinSegments);
inline constexpr Coefficients kTanh(kTanhSegments);

[[gnu::always_inline]] inline uint32_t Choose(bool condition, uint32_t a, uint32_t b) {
  const uint32_t mask = condition ? ~0u : 0u;
  return (a & mask) | (b & ~mask);
}

/// The square of 17 bits without its partial products of less than 2^19, divided by 2^19.
[[gnu::always_inline]] inline int32_t TruncatedSquare(uint32_t x) {
  const uint32_t high = x >> 9;
  const uint32_t low = x & 511;
  uint32_t t = (high * high) >> 1;
  // Bit 9 + j of x times the bits of `low` that give at least 2^19.
  const auto all_if_bit = [x](int bit) {
    return static_cast<uint32_t>(static_cast<int32_t>(x << (31 - bit)) >> 31);
  };
  t += (low >> 8) & all_if_bit(10);
  t += (low >> 7) & all_if_bit(11);
  t += (low >> 6) & all_if_bit(12);
  t += (low >> 5) & all_if_bit(13);
  t += (low >> 4) & all_if_bit(14);
  t += (low >> 3) & all_if_bit(15);
  t += (low >> 2) & all_if_bit(16);
  return static_cast<int32_t>(t);
}

/// The sum for a segment; exact, because it has at most 41 bits.
template <size_t kCount>
[[gnu::always_inline]] inline double Interpolate(const Coefficients<kCount>& c, uint32_t segment,
                                                 uint32_t x) {
  const auto at = static_cast<int32_t>(segment);
  return c.c0[at] + c.c1[at] * static_cast<int32_t>(x) + c.c2[at] * TruncatedSquare(x);
}
template <size_t kCount>
[[gnu::always_inline]] inline double Interpolate(const PackedCoefficients<kCount>& c,
                                                 uint32_t segment, uint32_t x) {
  const auto at = static_cast<int32_t>(segment);
  const int32_t both = c.c1_and_c2[at];
  const double first = c.C1(both);
  return c.c0[at] + first * static_cast<int32_t>(x) + c.C2(both) * TruncatedSquare(x);
}

/// The bits of value × 2^scale as a float32, cut off after 24 bits; for values above 0 whose
/// exponent float32 has.
[[gnu::always_inline]] inline uint32_t CutOff(double value, int32_t scale) {
  return static_cast<uint32_t>(std::bit_cast<uint64_t>(value) >> 29) +
         (static_cast<uint32_t>(scale + 127 - 1023) << 23);
}

[[gnu::always_inline]] inline bool IsNan(uint32_t bits) { return (bits & ~kSign) > kInfinity; }
[[gnu::always_inline]] inline int32_t ExponentOf(uint32_t bits) {
  return static_cast<int32_t>(bits >> 23 & 255u);
}

[[gnu::always_inline]] inline uint32_t UnitRcp(uint32_t x) {
  const uint32_t sign = x & kSign;
  const int32_t exponent = ExponentOf(x);
  const double sum = Interpolate(kRcp, x >> 16 & 127u, (x & 0xffffu) << 1);
  uint32_t r = CutOff(sum, 127 - exponent - 40);
  r = Choose(static_cast<int32_t>(r) < 0x00800000, 0, r);
  r = Choose(exponent == 0, kInfinity, r) | sign;
  return Choose(IsNan(x), kNan, r);
}

/// Half of a biased exponent, rounded up: that of a root, with half of the bias.
[[gnu::always_inline]] inline int32_t HalfExponent(int32_t exponent) { return (exponent + 1) >> 1; }
/// The segment of a root: 64 for numbers from 1 to below 2 times a power of four, 64 above.
[[gnu::always_inline]] inline uint32_t RootSegment(uint32_t x) {
  return (x >> 17 & 63u) | (~x >> 17 & 64u);
}

[[gnu::always_inline]] inline uint32_t UnitRsqrt(uint32_t x) {
  const int32_t exponent = ExponentOf(x);
  const int32_t half = HalfExponent(exponent);
  uint32_t r = CutOff(Interpolate(kRsqrt, RootSegment(x), x & 0x1ffffu), 64 - half - 40);
  const bool square = (x & 0x00ffffffu) == 0x00800000u;  // an even power of two
  r = Choose(square, static_cast<uint32_t>(127 + 64 - half) << 23, r);
  r = Choose(x == kInfinity, 0, r);
  r = Choose(x > kInfinity, kNan, r);
  return Choose(exponent == 0, kInfinity | (x & kSign), r);
}

[[gnu::always_inline]] inline uint32_t UnitSqrt(uint32_t x) {
  const int32_t exponent = ExponentOf(x);
  const int32_t half = HalfExponent(exponent);
  uint32_t r = CutOff(Interpolate(kSqrt, RootSegment(x), x & 0x1ffffu), half - 64 - 40);
  r = Choose(x == kInfinity, kInfinity, r);
  r = Choose(x > kInfinity, kNan, r);
  return Choose(exponent == 0, x & kSign, r);
}

/// The argument of ex2 with 23 bits behind the point, cut off; a negative one is then complemented,
/// not negated, unless it is a whole number. At most 128, whose power is infinity.
[[gnu::always_inline]] inline int32_t Ex2Number(uint32_t x) {
  constexpr uint32_t kLargest = 0x437f0000;  // 255, beyond which nothing changes
  const uint32_t magnitude = std::min(x & ~kSign, kLargest);
  const auto fixed = static_cast<int32_t>(std::bit_cast<float>(magnitude) * 0x1p23f);
  const int32_t negative = static_cast<int32_t>(x) >> 31;
  const int32_t whole = (fixed & static_cast<int32_t>(kMantissa)) == 0 ? 1 : 0;
  return std::min((fixed ^ negative) + (whole & negative & 1), 128 << 23);
}
/// The power of what is behind the point, from 1 to below 2, times 2^23 and cut off.
[[gnu::always_inline]] inline int32_t Ex2Mantissa(int32_t number) {
  const uint32_t fraction = static_cast<uint32_t>(number) & kMantissa;
  return static_cast<int32_t>(Interpolate(kEx2, fraction >> 17, fraction & 0x1ffffu) * 0x1p-16);
}
[[gnu::always_inline]] inline uint32_t Ex2Result(uint32_t x, int32_t number, int32_t mantissa) {
  const int32_t exponent = number >> 23;
  uint32_t r = static_cast<uint32_t>(mantissa) + (static_cast<uint32_t>(exponent + 126) << 23);
  r = Choose(exponent < -126, 0, r);
  return Choose(IsNan(x), kNan, r);
}
[[gnu::always_inline]] inline uint32_t UnitEx2(uint32_t x) {
  const int32_t number = Ex2Number(x);
  return Ex2Result(x, number, Ex2Mantissa(number));
}

/// The sum is cut off to 36 bits behind the point, towards minus infinity; a negative one is then
/// complemented, not negated.
[[gnu::always_inline]] inline uint32_t UnitLg2(uint32_t x) {
  constexpr double kShift = 0x1.8p52;  // adding it rounds to an integer
  const int32_t exponent = ExponentOf(x);
  const double sum = (exponent - 127) * 0x1p36 +
                     0.125 * Interpolate(kLg2, x >> 17 & 63u, x & 0x1ffffu);
  const double fixed = ((sum - 0.4375) + kShift) - kShift;  // sum has three bits behind the point
  const double magnitude = fixed < 0 ? -1 - fixed : fixed;
  uint32_t r = CutOff(magnitude, -36) | Choose(fixed < 0, kSign, 0);
  r = Choose(x == kOne, 0, r);
  r = Choose(x == kInfinity, kInfinity, r);
  r = Choose(x > kInfinity, kNan, r);
  return Choose(exponent == 0, kInfinity | kSign, r);
}

/// sin of x + `quarter` quarters of a turn. The argument is multiplied by 1 / 2π as a float32, cut
/// off to 24 bits, and then to 25 bits behind the point: large arguments keep few of them. The
/// second quarter is the first one's mirror image by complement.
[[gnu::always_inline]] inline uint32_t UnitSine(uint32_t x, uint32_t quarter, uint32_t sign) {
  const double turns = static_cast<double>(std::bit_cast<float>(x & ~kSign)) *
                       static_cast<double>(0.15915494f);
  const auto bits = std::bit_cast<uint64_t>(turns);
  const auto mantissa = (static_cast<uint32_t>(bits >> 29) & kMantissa) | 0x800000u;
  const int32_t shift = static_cast<int32_t>(bits >> 52) - 1023 + 25 - 23;
  const int32_t left = std::clamp(shift, 0, 31);
  const int32_t right = std::clamp(-shift, 0, 31);
  const uint32_t fixed = (mantissa >> right) << left;
  const uint32_t quadrant = (fixed >> 23) + quarter;
  const uint32_t at = (fixed ^ (0u - (quadrant & 1u))) & kMantissa;
  const double sum = Interpolate(kSin, at >> 17, at & 0x1ffffu);
  uint32_t r = CutOff(sum, -40);
  r = Choose(sum >= 0x1p40, kOne, r);
  r = Choose(at == 0, 0, r) | (((quadrant << 30) & kSign) ^ sign);
  return Choose((x & kInfinity) == kInfinity, kNan, r);
}
[[gnu::always_inline]] inline uint32_t UnitSin(uint32_t x) { return UnitSine(x, 0, x & kSign); }
[[gnu::always_inline]] inline uint32_t UnitCos(uint32_t x) { return UnitSine(x, 1, 0); }

/// The ranges from one power of two to the next, from 2^-8 on: base-2 logarithm of the number of
/// segments, and the first segment.
inline constexpr int32_t kTanhParts[11] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3};
inline constexpr int32_t kTanhFirst[11] = {0, 1, 2, 3, 5, 7, 11, 15, 19, 27, 43};

/// Small arguments, subnormal ones too, are their own result.
[[gnu::always_inline]] inline uint32_t UnitTanh(uint32_t x) {
  constexpr uint32_t kSmallest = 0x3b800000, kLargest = 0x41000000;  // 2^-8 and 8
  const uint32_t magnitude = x & ~kSign;
  const uint32_t inside = std::clamp(magnitude, kSmallest, kLargest - 1);
  const auto range = static_cast<int32_t>((inside >> 23) - (kSmallest >> 23));
  const int32_t parts = kTanhParts[range];
  const uint32_t mantissa = inside & kMantissa;
  const uint32_t segment = static_cast<uint32_t>(kTanhFirst[range]) + (mantissa >> (23 - parts));
  const double sum = Interpolate(kTanh, segment, (mantissa >> (6 - parts)) & 0x1ffffu);
  uint32_t r = CutOff(sum, std::min(range - 7, 0) - 40);
  r = Choose(magnitude >= kLargest, kOne, r);
  r = Choose(magnitude < kSmallest, magnitude, r) | (x & kSign);
  return Choose(IsNan(x), kNan, r);
}

/// The same for float64: the upper halves of argument and result, whose lower half is zero.
constexpr uint32_t kUpperInfinity = 0x7ff00000;

[[gnu::always_inline]] inline uint32_t CutOffUpper(double value, int32_t scale) {
  return static_cast<uint32_t>(std::bit_cast<uint64_t>(value) >> 32) +
         (static_cast<uint32_t>(scale) << 20);
}

[[gnu::always_inline]] inline uint32_t UnitRcp64(uint32_t x) {
  const uint32_t sign = x & kSign;
  const auto exponent = static_cast<int32_t>(x >> 20 & 2047u);
  const double sum = Interpolate(kRcp, x >> 13 & 127u, (x & 0x1fffu) << 4);
  uint32_t r = CutOffUpper(sum, 1023 - exponent - 40);
  r = Choose(static_cast<int32_t>(r) < 0x00100000, 0, r);
  r = Choose(exponent == 0, kUpperInfinity, r) | sign;
  return Choose((x & ~kSign) > kUpperInfinity, kNan, r);
}

[[gnu::always_inline]] inline uint32_t UnitRsqrt64(uint32_t x) {
  const auto exponent = static_cast<int32_t>(x >> 20 & 2047u);
  const int32_t half = HalfExponent(exponent);
  const uint32_t segment = (x >> 14 & 63u) | (~x >> 14 & 64u);
  uint32_t r = CutOffUpper(Interpolate(kRsqrt, segment, (x & 0x3fffu) << 3), 512 - half - 40);
  const bool square = (x & 0x001fffffu) == 0x00100000u;  // an even power of two
  r = Choose(square, static_cast<uint32_t>(1023 + 512 - half) << 20, r);
  r = Choose(x == kUpperInfinity, 0, r);
  r = Choose(x > kUpperInfinity, kNan, r);
  return Choose(exponent == 0, kUpperInfinity | (x & kSign), r);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
