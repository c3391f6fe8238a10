// Roots, reciprocals, exponentials, logarithms, sines: exactly rounded where PTX says .rn or the
// like, else as the unit for special functions delivers them (interpolator.h), with the operations
// that the assembler puts around it.
#include <bit>
#include <cmath>

#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/hardware/interpolator.h"
#include "atunner/vgpu/instructions/floating.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

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

using UnitFunction = uint32_t (*)(uint32_t);

/// A function of the unit. Every NaN that arithmetic delivers is kNan.
template <UnitFunction kUnit>
[[gnu::always_inline]] inline float OfUnit(float a) {
  return std::bit_cast<float>(kUnit(std::bit_cast<uint32_t>(a)));
}
[[gnu::always_inline]] inline float Canonical(float a) {
  const auto bits = std::bit_cast<uint32_t>(a);
  return std::bit_cast<float>(Choose(IsNan(bits), kNan, bits));
}
[[gnu::always_inline]] inline bool IsSubnormal(float a) {
  return (std::bit_cast<uint32_t>(a) & kInfinity) == 0;
}
[[gnu::always_inline]] inline float ChooseFloat(bool condition, float a, float b) {
  return std::bit_cast<float>(
      Choose(condition, std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b)));
}

/// Without .ftz, arguments that the unit would take for zeros are scaled, and the results scaled
/// back: `kUp` is 2^24, `kBack` the result's factor.
constexpr float kUp = 0x1p24f;

struct Ex2 {
  static constexpr bool kSlow = true;
  /// Where the result is subnormal: it is the square of half the way.
  static bool IsSmall(float a) { return a < -126.0f; }
  static float Argument(float a) { return ChooseFloat(IsSmall(a), a * 0.5f, a); }
  static float Result(float a, float r) { return ChooseFloat(IsSmall(a), r * r, r); }
  float operator()(float a) const { return Result(a, OfUnit<UnitEx2>(Argument(a))); }
};
struct Lg2 {
  static constexpr bool kSlow = true;
  float operator()(float a) const {
    const bool small = IsSubnormal(a);
    const float r = OfUnit<UnitLg2>(ChooseFloat(small, a * kUp, a));
    return Canonical(ChooseFloat(small, r - 24.0f, r));
  }
};
template <UnitFunction kUnit, int kBack>
struct ScaledRoot {
  static constexpr bool kSlow = true;
  float operator()(float a) const {
    const bool small = IsSubnormal(a);
    const float r = OfUnit<kUnit>(ChooseFloat(small, a * kUp, a));
    const float back = kBack > 0 ? 4096.0f : 1.0f / 4096.0f;
    return Canonical(ChooseFloat(small, r * back, r));
  }
};
/// The factor that brings a divisor into the range whose reciprocals are normal numbers.
[[gnu::always_inline]] inline float ScaleOf(float a, bool up) {
  const float down = ChooseFloat(std::fabs(a) > 0x1p126f, 0.25f, 1.0f);
  return ChooseFloat(up && std::fabs(a) < 0x1p-126f, kUp, down);
}
struct Rcp {
  static constexpr bool kSlow = true;
  float operator()(float a) const {
    const float scale = ScaleOf(a, true);
    return Canonical(OfUnit<UnitRcp>(a * scale) * scale);
  }
};
template <UnitFunction kUnit>
struct Plain {
  static constexpr bool kSlow = true;
  float operator()(float a) const { return OfUnit<kUnit>(a); }
};

/// ex2 of a warp, the commonest of these functions, in three loops: the look-ups of all lanes are
/// under way before the first result is needed. A quarter faster than one loop.
template <bool kFtz>
void Ex2OfWarp(BlockState& x, const Op& op, uint32_t mask) {
  if (mask != ~0u) {
    if constexpr (kFtz) return UnaryOp<float, Plain<UnitEx2>>(x, op, mask);
    return UnaryOp<float, Ex2>(x, op, mask);
  }
  const uint32_t* a = x.Source(op.src[0]);
  uint32_t* d = x.Slot(op.dst);
  const auto argument = [&](int l) {
    if constexpr (kFtz) return a[l];
    return std::bit_cast<uint32_t>(Ex2::Argument(std::bit_cast<float>(a[l])));
  };
  int32_t numbers[kLanes], mantissas[kLanes];
  for (int l = 0; l < kLanes; ++l) numbers[l] = Ex2Number(argument(l));
  for (int l = 0; l < kLanes; ++l) mantissas[l] = Ex2Mantissa(numbers[l]);
#pragma GCC ivdep
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t r = Ex2Result(argument(l), numbers[l], mantissas[l]);
    d[l] = kFtz ? r
                : std::bit_cast<uint32_t>(
                      Ex2::Result(std::bit_cast<float>(a[l]), std::bit_cast<float>(r)));
  }
}

/// div.approx and div.full: a product with the reciprocal. Only .full scales large divisors, whose
/// reciprocal is zero otherwise.
template <bool kFull, bool kFtz>
struct Quotient {
  static constexpr bool kSlow = true;
  float operator()(float a, float b) const {
    const float divisor = Flush<kFtz>(b);
    float scale = 1;
    if constexpr (kFull)
      scale = ScaleOf(divisor, !kFtz);
    else if constexpr (!kFtz)
      scale = ChooseFloat(std::fabs(divisor) < 0x1p-126f, kUp, 1.0f);
    const float dividend = Flush<kFtz>(Flush<kFtz>(a) * scale);
    return Canonical(Flush<kFtz>(dividend * OfUnit<UnitRcp>(divisor * scale)));
  }
};

/// rcp and rsqrt .approx.ftz.f64: the upper 32 bits of operand and result count.
template <UnitFunction kUnit>
struct UpperHalf {
  double operator()(double a) const {
    const auto upper = static_cast<uint32_t>(std::bit_cast<uint64_t>(a) >> 32);
    return std::bit_cast<double>(uint64_t{kUnit(upper)} << 32);
  }
};

struct Half {
  static uint32_t Widen(uint32_t half) {
    return std::bit_cast<uint32_t>(HalfToFloat(static_cast<uint16_t>(half)));
  }
  /// Cut off to 11 bits.
  static uint32_t Narrow(uint32_t bits) {
    const uint32_t sign = bits >> 16 & 0x8000u;
    const float magnitude = std::bit_cast<float>(bits & ~kSign);
    if (IsNan(bits)) return 0x7fff;
    if (magnitude >= 0x1p16f) return sign | 0x7c00;
    if (magnitude < 0x1p-14f) return sign | static_cast<uint32_t>(magnitude * 0x1p24f);
    return sign | ((bits & ~kSign) - (uint32_t{127 - 15} << 23)) >> 13;
  }
};
struct Brain {
  static uint32_t Widen(uint32_t half) { return half << 16; }
  static uint32_t Narrow(uint32_t bits) { return bits >> 16; }
};

/// A function of 16-bit floats: the one of float32, cut off.
template <class Type, UnitFunction kUnit, int kHalves>
void OfHalves(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  uint32_t* d = x.Slot(op.dst);
  ForLanes(mask, [&](int l) {
    uint32_t r = Type::Narrow(kUnit(Type::Widen(a[l] & 0xffffu)));
    if (kHalves == 2) r |= Type::Narrow(kUnit(Type::Widen(a[l] >> 16))) << 16;
    d[l] = r;
  });
}
template <UnitFunction kUnit>
Handler HalfFunction(Type type) {
  switch (type) {
    case Type::kF16:
      return OfHalves<Half, kUnit, 1>;
    case Type::kF16x2:
      return OfHalves<Half, kUnit, 2>;
    case Type::kBF16:
      return OfHalves<Brain, kUnit, 1>;
    case Type::kBF16x2:
      return OfHalves<Brain, kUnit, 2>;
    default:
      return nullptr;
  }
}

template <class Exact, UnitFunction kUnit>
Handler Float64(const Form& form) {
  return form.Has("approx") && form.Has("ftz") ? UnaryOp<double, UpperHalf<kUnit>>
                                               : Floating<Exact, 1>(form);
}
/// With .ftz the unit's own result, else that of `Whole`.
template <UnitFunction kUnit, class Whole>
Handler Approximate(const Form& form) {
  return form.Has("ftz") ? UnaryOp<float, Plain<kUnit>> : UnaryOp<float, Whole>;
}

Handler ApproximateHandler(const Form& form) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "rcp") return Approximate<UnitRcp, Rcp>(form);
  if (opcode == "sqrt") return Approximate<UnitSqrt, ScaledRoot<UnitSqrt, -1>>(form);
  if (opcode == "rsqrt") return Approximate<UnitRsqrt, ScaledRoot<UnitRsqrt, 1>>(form);
  if (opcode == "ex2") return form.Has("ftz") ? Ex2OfWarp<true> : Ex2OfWarp<false>;
  if (opcode == "lg2") return Approximate<UnitLg2, Lg2>(form);
  if (opcode == "sin") return UnaryOp<float, Plain<UnitSin>>;
  if (opcode == "cos") return UnaryOp<float, Plain<UnitCos>>;
  if (opcode == "tanh") return UnaryOp<float, Plain<UnitTanh>>;
  return nullptr;
}

}  // namespace

Handler SpecialHandler(const Form& form, Op&) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "ex2" && form.type != Type::kF32) return HalfFunction<UnitEx2>(form.type);
  if (opcode == "tanh" && form.type != Type::kF32) return HalfFunction<UnitTanh>(form.type);
  if (form.type == Type::kF32 && form.Has("approx")) return ApproximateHandler(form);
  if (opcode == "rcp") return Float64<FRcp, UnitRcp64>(form);
  if (opcode == "sqrt") return Floating<FSqrt, 1>(form);
  if (opcode == "rsqrt") return Float64<FRsqrt, UnitRsqrt64>(form);
  return nullptr;
}

Handler QuotientHandler(const Form& form) {
  const bool ftz = form.Has("ftz");
  if (form.Has("full"))
    return ftz ? BinaryOp<float, Quotient<true, true>> : BinaryOp<float, Quotient<true, false>>;
  return ftz ? BinaryOp<float, Quotient<false, true>> : BinaryOp<float, Quotient<false, false>>;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
