// Functions of scalar_op.def that the standard library lacks, or has with another meaning.
#pragma once

#include <cmath>
#include <cstdint>

namespace atunner::graph {

/// NaN wins, as in kernels; of zeros, either.
inline double Minimum(double a, double b) { return a < b || std::isnan(a) ? a : b; }
inline double Maximum(double a, double b) { return a > b || std::isnan(a) ? a : b; }
inline double Sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : a; }

/// Towards minus infinity. PartitionPlan by zero gives 0, as nothing may trap.
inline int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
/// The quotient is rounded before it is cut off: 1 / 0.1 is 10, of which 0.1 has 9. What is left
/// then has the wrong sign.
inline double FloorDivide(double a, double b) {
  const double quotient = std::floor(a / b);
  const double rest = std::isinf(b) ? a : std::fma(-quotient, b, a);
  if (b == 0) return quotient;
  return quotient - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0) + (a - a);  // of infinities NaN
}
/// The sign of b, as in Python and torch.remainder.
inline int64_t FloorModulo(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline double FloorModulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline int64_t ShiftLeft(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
inline int64_t ShiftRight(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

/// log |gamma(a)|; std::lgamma writes a global.
inline double LogGamma(double a) {
  int sign = 0;
  return ::lgamma_r(a, &sign);
}

/// Logarithmic derivative of the gamma function: reflection, recurrence up to 10, asymptotic series
/// (Abramowitz and Stegun 6.3.7, 6.3.5, 6.3.18).
inline double Digamma(double a) {
  if (a <= 0 && a == std::floor(a)) return a == 0 ? std::copysign(INFINITY, -a) : NAN;
  // exact beside poles
  if (a < 0) return Digamma(1 - a) - M_PI / std::tan(M_PI * (a - std::nearbyint(a)));
  double shift = 0;
  while (a < 10) {
    shift -= 1 / a;
    a += 1;
  }
  const double s = 1 / (a * a);
  const double tail = s * (1.0 / 12 -
                           s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132)))));
  return shift + std::log(a) - 0.5 / a - tail;
}

/// Inverse of erf: Winitzki's approximation, then Newton's steps on erf or, in the tails, on log
/// erfc.
inline double Erfinv(double y) {
  if (!(std::fabs(y) < 1)) return std::fabs(y) == 1 ? std::copysign(INFINITY, y) : NAN;
  if (y == 0) return y;
  const double l = std::log1p(-y * y);
  const double k = 2 / (M_PI * 0.147) + l / 2;
  double x = std::sqrt(std::sqrt(k * k - l / 0.147) - k);
  const double c = 1 - std::fabs(y);  // exact for |y| ≥ 1/2
  for (int i = 0; i < 4; ++i) {
    const double slope = M_2_SQRTPI * std::exp(-x * x);
    const double error = std::fabs(y) < 0.5 ? std::erf(x) - std::fabs(y) : c - std::erfc(x);
    const double step = error / slope;
    x -= step / (1 + x * step);  // Halley
  }
  return std::copysign(x, y);
}

}  // namespace atunner::graph
