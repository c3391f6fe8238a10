// float32 and float64 arithmetic, special functions included.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "atunner/vgpu/instructions/fused.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

// ---- floats
// NaN becomes +0
inline float Saturate(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }

/// float32 operation with .ftz and .sat as template switches.
template <class F, bool kFtz, bool kSat>
struct F32 {
  static constexpr bool kSlow = kCostly<F>;
  template <class... A>
  float operator()(A... a) const {
    const float r = Flush<kFtz>(F{}(Flush<kFtz>(a)...));
    return kSat ? Saturate(r) : r;
  }
};
struct FAdd {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct FSub {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct FMul {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct FDiv {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct FFma {
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
struct FNeg {
  template <class T>
  T operator()(T a) const {
    return -a;
  }
};
struct FAbs {
  template <class T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
/// A NaN operand loses; -0 < +0. Equal operands differ in the sign bit at most. No branches, so
/// that loops become vectors.
template <bool kLess>
struct FExtreme {
  template <class T>
  T operator()(T a, T b) const {
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    const auto p = std::bit_cast<Bits>(a);
    const auto q = std::bit_cast<Bits>(b);
    const T same = std::bit_cast<T>(kLess ? p | q : p & q);
    T r = (kLess ? a < b : a > b) ? a : b;
    r = a == b ? same : r;
    r = b != b ? a : r;
    return r != r ? std::numeric_limits<T>::quiet_NaN() : r;
  }
};
using FMin = FExtreme<true>;
using FMax = FExtreme<false>;
struct FMinNan {
  template <class T>
  T operator()(T a, T b) const {
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : FMin{}(a, b);
  }
};
struct FMaxNan {
  template <class T>
  T operator()(T a, T b) const {
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : FMax{}(a, b);
  }
};
struct FSqrt {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct FRcp {
  template <class T>
  T operator()(T a) const {
    return T{1} / a;
  }
};
struct FRsqrt {
  template <class T>
  T operator()(T a) const {
    // -0 gives -inf, as IEEE's rSqrt
    return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};
/// condition ? a : b without a branch, which would keep the loop over the lanes from becoming
/// vectors.
template <class T>
[[gnu::always_inline]] inline T Select(bool condition, T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const Bits mask = condition ? ~Bits{0} : 0;
  return std::bit_cast<T>((std::bit_cast<Bits>(a) & mask) | (std::bit_cast<Bits>(b) & ~mask));
}
/// A polynomial by its coefficients from the highest; without a loop, so that the one over the
/// lanes becomes vectors.
template <class... C>
[[gnu::always_inline]] inline double Horner(double v, double first, C... rest) {
  double sum = first;
  ((sum = std::fma(sum, v, rest)), ...);
  return sum;
}
/// 2^a in float64, by the nearest integer and a polynomial of the rest, |r| ≤ ½, whose relative
/// error is below 2^-39: the result is the correctly rounded one but for a case in some ten
/// thousand. A NaN goes through all of it: widened from float32 it has no bits where the integer's
/// would be.
struct FEx2 {
  static constexpr bool kSlow = true;
  float operator()(float a) const {
    // Adding it rounds to an integer, which is then in the low bits.
    constexpr double kShift = 0x1.8p52;
    const float below = Select(a > 200.0f, 200.0f, a);
    const double v = Select(below < -200.0f, -200.0f, below);
    const double shifted = v + kShift;
    const double r = v - (shifted - kShift);
    const double sum = Horner(r, 0x1.663487d8abc81p-20, 0x1.00ee071c7c030p-16,
                              0x1.4306c1165a375p-13, 0x1.5d872975c4ed2p-10, 0x1.3b2ab7f3b3217p-7,
                              0x1.c6b08defc25fdp-5, 0x1.ebfbdff7c5a79p-3, 0x1.62e42fef7a78bp-1,
                              1.0);
    return static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(sum) +
                                                    (std::bit_cast<uint64_t>(shifted) << 52)));
  }
};
/// log2(a) in float64: the exponent, and of the significand m in [√½, √2) twice the area tangent of
/// (m - 1) / (m + 1), whose series ends below 2^-45.
struct FLg2 {
  static constexpr bool kSlow = true;
  float operator()(float a) const {
    constexpr uint64_t kRoot = 0x3fe6a09e667f3bcdull;  // √½
    constexpr double kTwoByLn2 = 0x1.71547652b82fep+1;
    const double v = a;
    const auto bits = std::bit_cast<uint64_t>(v);
    const uint64_t above = bits - kRoot;
    const uint64_t exponent = above & 0xfff0000000000000ull;
    const double m = std::bit_cast<double>(bits - exponent);
    // The exponent as a float64: added to the bits of 2^52 × 1.5, signed.
    const double e = std::bit_cast<double>((exponent >> 52 ^ 0x800) + 0x4338000000000000ull) -
                     (0x1.8p52 + 0x800);
    const double s = (m - 1.0) / (m + 1.0);
    const double q = s * s;
    const double sum = Horner(q, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7,
                              1.0 / 5, 1.0 / 3, 1.0);
    double r = e + kTwoByLn2 * s * sum;
    r = Select(v == 0, -std::numeric_limits<double>::infinity(), r);
    r = Select(!(v < std::numeric_limits<double>::infinity()), v, r);  // NaN and +∞ are their own
    return static_cast<float>(Select(v < 0, std::numeric_limits<double>::quiet_NaN(), r));
  }
};
struct FSin {
  static constexpr bool kSlow = true;
  float operator()(float a) const { return static_cast<float>(std::sin(static_cast<double>(a))); }
};
struct FCos {
  static constexpr bool kSlow = true;
  float operator()(float a) const { return static_cast<float>(std::cos(static_cast<double>(a))); }
};
struct FTanh {
  static constexpr bool kSlow = true;
  float operator()(float a) const { return static_cast<float>(std::tanh(static_cast<double>(a))); }
};
struct FCopysign {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

/// Directed rounding through the machine's rounding mode; rare, so not vectorised. `volatile` keeps
/// the order.
template <class T, class F, int kArity, int kMode>
void Directed(BlockState& x, const Op& op, uint32_t mask) {
  const int saved = std::fegetround();
  std::fesetround(kMode);
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  for (; mask != 0; mask &= mask - 1) {
    const int l = std::countr_zero(mask);
    volatile T p = Lane<T>::Get(a, l);
    volatile T result;
    if constexpr (kArity == 3) {
      volatile T q = Lane<T>::Get(b, l);
      volatile T r = Lane<T>::Get(c, l);
      result = F{}(static_cast<T>(p), static_cast<T>(q), static_cast<T>(r));
    } else if constexpr (kArity == 2) {
      volatile T q = Lane<T>::Get(b, l);
      result = F{}(static_cast<T>(p), static_cast<T>(q));
    } else {
      result = F{}(static_cast<T>(p));
    }
    Lane<T>::Set(d, l, result);
  }
  std::fesetround(saved);
}

template <class T, class F, int kArity>
Handler DirectedFor(const Form& form) {
  if (form.Has("rz")) return Directed<T, F, kArity, FE_TOWARDZERO>;
  if (form.Has("rm")) return Directed<T, F, kArity, FE_DOWNWARD>;
  if (form.Has("rp")) return Directed<T, F, kArity, FE_UPWARD>;
  return nullptr;
}

template <class F, int kArity, bool kFtz, bool kSat>
Handler Float32With(const Form& form) {
  using G = F32<F, kFtz, kSat>;
  if (Handler directed = DirectedFor<float, G, kArity>(form)) return directed;
  if constexpr (kArity == 1)
    return UnaryOp<float, G>;
  else if constexpr (kArity == 2)
    return BinaryOp<float, G>;
  else
    return TernaryOp<float, G>;
}
template <class F, int kArity>
Handler Float32(const Form& form) {
  const bool sat = form.Has("sat");
  if (form.Has("ftz"))
    return sat ? Float32With<F, kArity, true, true>(form)
               : Float32With<F, kArity, true, false>(form);
  return sat ? Float32With<F, kArity, false, true>(form)
             : Float32With<F, kArity, false, false>(form);
}

template <class F, int kArity>
Handler Float64(const Form& form) {
  if (Handler directed = DirectedFor<double, F, kArity>(form)) return directed;
  if constexpr (kArity == 1)
    return UnaryOp<double, F>;
  else if constexpr (kArity == 2)
    return BinaryOp<double, F>;
  else
    return TernaryOp<double, F>;
}

template <class F, int kArity>
Handler Floating(const Form& form) {
  if (form.type == Type::kF32) return Float32<F, kArity>(form);
  if (form.type == Type::kF64) return Float64<F, kArity>(form);
  return nullptr;
}

/// min and max with .NaN (a NaN operand wins) and .xorsign.abs (of magnitudes, with the product's
/// sign).
template <class F>
struct XorSignAbs {
  template <class T>
  T operator()(T a, T b) const {
    const T r = std::fabs(F{}(std::fabs(a), std::fabs(b)));
    return std::signbit(a) != std::signbit(b) ? -r : r;
  }
};
/// Applies a binary function to three operands, pair by pair.
template <class F>
struct OfThree {
  float operator()(float a, float b, float c) const { return F{}(F{}(a, b), c); }
};
template <class F, class FNan>
Handler MinMaxOfThree(const Form& form) {
  if (form.type != Type::kF32) return nullptr;
  if (form.Has("xorsign"))
    return form.Has("NaN") ? Float32<OfThree<XorSignAbs<FNan>>, 3>(form)
                           : Float32<OfThree<XorSignAbs<F>>, 3>(form);
  return form.Has("NaN") ? Float32<OfThree<FNan>, 3>(form) : Float32<OfThree<F>, 3>(form);
}
template <class F, class FNan>
Handler MinMax(const Form& form) {
  if (form.instruction->operands.size() == 4) return MinMaxOfThree<F, FNan>(form);
  if (form.Has("xorsign")) {
    if (form.type != Type::kF32) return nullptr;
    return form.Has("NaN") ? Float32<XorSignAbs<FNan>, 2>(form) : Float32<XorSignAbs<F>, 2>(form);
  }
  return form.Has("NaN") ? Floating<FNan, 2>(form) : Floating<F, 2>(form);
}

/// rcp and rsqrt .approx.ftz.f64: the upper 32 bits of operand and result count, subnormals are
/// zeros.
template <class F>
struct UpperHalf {
  double operator()(double a) const {
    uint64_t bits = std::bit_cast<uint64_t>(a) & ~uint64_t{0xffffffff};
    if ((bits & (uint64_t{0x7ff} << 52)) == 0) bits &= uint64_t{1} << 63;
    bits = std::bit_cast<uint64_t>(F{}(std::bit_cast<double>(bits))) & ~uint64_t{0xffffffff};
    if ((bits & (uint64_t{0x7ff} << 52)) == 0) bits &= uint64_t{1} << 63;
    return std::bit_cast<double>(bits);
  }
};

/// testp: lane bits of a class of float. `variant` counts the names below.
constexpr std::string_view kClasses[] = {"finite",     "infinite", "number",
                                         "notanumber", "normal",   "subnormal"};
template <class T>
void Testp(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  uint32_t bits = 0;
  ForLanes(mask, [&](int l) {
    const T v = Lane<T>::Get(a, l);
    const bool answers[] = {std::isfinite(v), std::isinf(v),    !std::isnan(v),
                            std::isnan(v),    std::isnormal(v), std::fpclassify(v) == FP_SUBNORMAL};
    bits |= (answers[op.variant] ? 1u : 0u) << l;
  });
  uint32_t* d = x.Slot(op.dst);
  *d = (*d & ~mask) | bits;
}
Handler TestpHandler(const Form& form, Op& op) {
  for (op.variant = 0; op.variant < 6; ++op.variant) {
    if (!form.Has(kClasses[op.variant])) continue;
    return form.type == Type::kF32   ? Testp<float>
           : form.type == Type::kF64 ? Testp<double>
                                     : nullptr;
  }
  return nullptr;
}

}  // namespace

const Handler kPlainFma = TernaryOp<float, F32<FFma, false, false>>;

Handler FloatHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  if (form.type != Type::kF32 && form.type != Type::kF64) return nullptr;
  if (opcode == "add") return Floating<FAdd, 2>(form);
  if (opcode == "sub") return Floating<FSub, 2>(form);
  if (opcode == "mul") return Floating<FMul, 2>(form);
  if (opcode == "mad" || opcode == "fma") return Floating<FFma, 3>(form);
  if (opcode == "min") return MinMax<FMin, FMinNan>(form);
  if (opcode == "max") return MinMax<FMax, FMaxNan>(form);
  if (opcode == "abs") return Floating<FAbs, 1>(form);
  if (opcode == "neg") return Floating<FNeg, 1>(form);
  if (opcode == "div") return Floating<FDiv, 2>(form);
  if (opcode == "copysign") return Floating<FCopysign, 2>(form);
  if (opcode == "testp") return TestpHandler(form, op);
  return nullptr;
}

Handler SpecialHandler(const Form& form, Op&) {
  const std::string& opcode = form.instruction->opcode;
  const bool upper_half = form.type == Type::kF64 && form.Has("approx") && form.Has("ftz");
  if (opcode == "rcp")
    return upper_half ? UnaryOp<double, UpperHalf<FRcp>> : Floating<FRcp, 1>(form);
  if (opcode == "sqrt") return Floating<FSqrt, 1>(form);
  if (opcode == "rsqrt")
    return upper_half ? UnaryOp<double, UpperHalf<FRsqrt>> : Floating<FRsqrt, 1>(form);
  if (form.type != Type::kF32) return nullptr;
  if (opcode == "ex2") return Float32<FEx2, 1>(form);
  if (opcode == "lg2") return Float32<FLg2, 1>(form);
  if (opcode == "sin") return Float32<FSin, 1>(form);
  if (opcode == "cos") return Float32<FCos, 1>(form);
  if (opcode == "tanh") return Float32<FTanh, 1>(form);
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
