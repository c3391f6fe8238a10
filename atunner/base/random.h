// The only source of random numbers: a small generator, always seeded, with equal numbers on every
// machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace atunner {

/// SplitMix64 step: a good mixer for seeds and hashes. Source: Steele, Lea, Flood, OOPSLA 2014.
constexpr uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Deterministic stream of random numbers (SplitMix64 sequence). Copyable; satisfies
/// UniformRandomBitGenerator.
class Random {
 public:
  using result_type = uint64_t;
  explicit constexpr Random(uint64_t seed) : state_(seed) {}

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  constexpr uint64_t operator()() { return Next(); }

  constexpr uint64_t Next() {
    const uint64_t value = Mix64(state_);
    state_ += 0x9e3779b97f4a7c15ull;
    return value;
  }
  /// Uniform in [0, 1), 53 bits.
  constexpr double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  constexpr double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  /// Uniform in [0, n), n > 0. Multiply-shift; the bias is under n / 2^64.
  constexpr uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<__uint128_t>(Next()) * n) >> 64);
  }
  /// Standard normal (Box–Muller, one of the pair).
  double Normal() {
    const double u = 1.0 - Uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * Uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace atunner
