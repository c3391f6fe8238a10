// Conversions between all scalar types.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "atunner/model/dtype.h"
#include "atunner/vgpu/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

bool IsFloatType(Type type) {
  return type == Type::kF16 || type == Type::kBF16 || type == Type::kF32 || type == Type::kF64 || type == Type::kTF32;
}
bool IsSigned(Type type) { return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64; }

double LoadReal(Type type, const uint32_t* slot, int lane) {
  switch (type) {
    case Type::kF64:
      return Lane<double>::Get(slot, lane);
    case Type::kF16:
      return HalfToFloat(static_cast<uint16_t>(slot[lane]));
    case Type::kBF16:
      return BFloat16ToFloat(static_cast<uint16_t>(slot[lane]));
    default:
      return Lane<float>::Get(slot, lane);
  }
}

int64_t LoadInteger(Type type, const uint32_t* slot, int lane) {
  switch (type) {
    case Type::kS8:
      return static_cast<int8_t>(slot[lane]);
    case Type::kU8:
      return static_cast<uint8_t>(slot[lane]);
    case Type::kS16:
      return static_cast<int16_t>(slot[lane]);
    case Type::kU16:
      return static_cast<uint16_t>(slot[lane]);
    case Type::kS32:
      return static_cast<int32_t>(slot[lane]);
    case Type::kU32:
      return static_cast<uint32_t>(slot[lane]);
    default:
      return Lane<int64_t>::Get(slot, lane);
  }
}

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp, kAway };

// long double holds every source exactly, 64-bit integers included, so that each conversion rounds once.
using Exact = long double;

Exact RoundToInteger(Exact v, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(v);
    case Rounding::kDown:
      return std::floor(v);
    case Rounding::kUp:
      return std::ceil(v);
    case Rounding::kAway:
      return std::copysign(std::floor(std::fabs(v) + Exact{0.5}), v);
    default:
      return std::nearbyint(v);
  }
}

/// A binary floating-point format: significand bits, exponent of the last place of its subnormals, largest finite
/// value.
struct Format {
  int digits;
  int lowest;
  double largest;
};
Format FormatOf(Type type) {
  switch (type) {
    case Type::kF16:
      return {11, -24, 65504.0};
    case Type::kBF16:
      return {8, -133, 0x1.fep127};
    case Type::kTF32:
      return {11, -136, 0x1.ffcp127};
    case Type::kF32:
      return {24, -149, std::numeric_limits<float>::max()};
    case Type::kE4M3x2:
      return {4, -9, 448.0};
    case Type::kE5M2x2:
      return {3, -16, 57344.0};
    default:
      return {53, -1074, std::numeric_limits<double>::max()};
  }
}

Exact RoundTo(Type type, Exact v, Rounding rounding) {
  if (v == 0 || !std::isfinite(v)) return v;
  const Format f = FormatOf(type);
  int exponent = 0;
  std::frexp(v, &exponent);
  const int place = std::max(exponent - f.digits, f.lowest);
  const Exact r = std::ldexp(RoundToInteger(std::ldexp(v, -place), rounding), place);
  if (std::fabs(r) <= f.largest) return r;
  const bool inwards =
      rounding == Rounding::kZero || (rounding == Rounding::kDown && v > 0) || (rounding == Rounding::kUp && v < 0);
  return std::copysign(inwards ? Exact{f.largest} : std::numeric_limits<Exact>::infinity(), v);
}

void StoreReal(Type type, uint32_t* slot, int lane, Exact v) {
  switch (type) {
    case Type::kF64:
      Lane<double>::Set(slot, lane, static_cast<double>(v));
      break;
    case Type::kF16:
      slot[lane] = FloatToHalf(static_cast<float>(v));
      break;
    case Type::kBF16:
      slot[lane] = FloatToBFloat16(static_cast<float>(v));
      break;
    default:
      Lane<float>::Set(slot, lane, static_cast<float>(v));
  }
}

/// Float to integer clamps. NaN gives 0, or the sign bit where a 64-bit type takes part.
int64_t Saturated(Type to, Type from, Exact v) {
  const int bits = ptx::BitsOf(to);
  if (std::isnan(v)) return from != Type::kF64 && bits < 64 ? 0 : static_cast<int64_t>(uint64_t{1} << (bits - 1));
  if (IsSigned(to)) {
    const Exact high = std::ldexp(Exact{1}, bits - 1);
    if (v >= high) return bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
    if (v < -high) return bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
    return static_cast<int64_t>(v);
  }
  if (v <= 0) return 0;
  if (v >= std::ldexp(Exact{1}, bits)) return bits == 64 ? -1 : (int64_t{1} << bits) - 1;
  return static_cast<int64_t>(static_cast<uint64_t>(v));
}

int64_t ClampInteger(Type to, Type from, int64_t v) {
  const int bits = ptx::BitsOf(to);
  if (bits == 64 && IsSigned(to)) return from == Type::kU64 && v < 0 ? INT64_MAX : v;
  if (bits == 64) return IsSigned(from) && v < 0 ? 0 : v;
  const int64_t high = IsSigned(to) ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
  const int64_t low = IsSigned(to) ? -(int64_t{1} << (bits - 1)) : 0;
  if (from == Type::kU64 && v < 0) return high;
  return std::clamp(v, low, high);
}

/// Cut to an integer type and extended again by that type's sign.
int64_t Truncated(Type type, int64_t v) {
  const uint64_t bits = static_cast<uint64_t>(v);
  const uint32_t words[2] = {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  return LoadInteger(type, words, 0);
}

void StoreInteger(Type type, uint32_t* slot, int lane, int64_t v) {
  if (ptx::BitsOf(type) == 64) return Lane<int64_t>::Set(slot, lane, v);
  switch (type) {  // a wider register receives the value extended by the type's sign
    case Type::kS8:
      v = static_cast<int8_t>(v);
      break;
    case Type::kU8:
      v = static_cast<uint8_t>(v);
      break;
    case Type::kS16:
      v = static_cast<int16_t>(v);
      break;
    case Type::kU16:
      v = static_cast<uint16_t>(v);
      break;
    default:
      break;
  }
  slot[lane] = static_cast<uint32_t>(v);
}

/// Packed into Op::imm by ConvertHandler.
struct ConvertOptions {
  Type to = Type::kNone, from = Type::kNone;
  Rounding rounding = Rounding::kNearest;
  bool ftz = false, sat = false, finite = false, relu = false, integer_round = false;
  bool wide_source = false, wide_destination = false;  ///< 64-bit register of a narrower integer type
};
uint64_t Pack(const ConvertOptions& o) {
  const bool flags[] = {o.ftz, o.sat, o.finite, o.relu, o.integer_round, o.wide_source, o.wide_destination};
  uint64_t v =
      static_cast<uint64_t>(o.to) | static_cast<uint64_t>(o.from) << 8 | static_cast<uint64_t>(o.rounding) << 16;
  for (size_t i = 0; i < std::size(flags); ++i) v |= uint64_t{flags[i]} << (24 + i);
  return v;
}
ConvertOptions Unpack(uint64_t v) {
  const auto flag = [&](int i) { return (v >> (24 + i) & 1) != 0; };
  return {static_cast<Type>(v & 255),
          static_cast<Type>((v >> 8) & 255),
          static_cast<Rounding>((v >> 16) & 255),
          flag(0),
          flag(1),
          flag(2),
          flag(3),
          flag(4),
          flag(5),
          flag(6)};
}

Exact FlushSingle(Exact v) { return std::fabs(v) < 0x1p-126L ? std::copysign(Exact{0}, v) : v; }

Exact ConvertReal(const ConvertOptions& o, Exact v) {
  if (o.ftz && o.from == Type::kF32) v = FlushSingle(v);
  v = o.integer_round ? RoundToInteger(v, o.rounding) : RoundTo(o.to, v, o.rounding);
  if (o.ftz && o.to == Type::kF32) v = FlushSingle(v);
  if (o.sat) v = v > 0 ? std::min(v, Exact{1}) : Exact{0};
  if (o.relu) v = v > 0 || std::isnan(v) ? v : Exact{0};
  if (o.finite && std::isinf(v)) v = std::copysign(Exact{FormatOf(o.to).largest}, v);
  return v;
}

void ConvertLane(const ConvertOptions& o, uint32_t* d, const uint32_t* a, int l) {
  if (IsFloatType(o.from)) {
    Exact v = LoadReal(o.from, a, l);
    if (IsFloatType(o.to)) return StoreReal(o.to, d, l, ConvertReal(o, v));
    if (o.ftz && o.from == Type::kF32) v = FlushSingle(v);
    const int64_t r = Saturated(o.to, o.from, RoundToInteger(v, o.rounding));
    return o.wide_destination ? Lane<int64_t>::Set(d, l, r) : StoreInteger(o.to, d, l, r);
  }
  // The low half of a lane of a 64-bit register is the narrower value.
  const int64_t v = o.wide_source ? LoadInteger(o.from, a + 2 * l, 0) : LoadInteger(o.from, a, l);
  if (!IsFloatType(o.to)) {
    const int64_t r = o.sat ? ClampInteger(o.to, o.from, v) : v;
    return o.wide_destination ? Lane<int64_t>::Set(d, l, Truncated(o.to, r)) : StoreInteger(o.to, d, l, r);
  }
  const Exact real = o.from == Type::kU64 ? static_cast<Exact>(static_cast<uint64_t>(v)) : static_cast<Exact>(v);
  StoreReal(o.to, d, l, ConvertReal(o, real));
}
void ConvertGeneric(Exec& x, const Op& op, uint32_t mask) {
  const ConvertOptions o = Unpack(op.imm);
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { ConvertLane(o, d, a, l); });
}

// ---- 8-bit floats, always in pairs
// -----------------------------------------------------------------------------------
uint32_t NarrowFp8(const ConvertOptions& o, Exact v) {
  const Format f = FormatOf(o.to);
  const bool e4m3 = o.to == Type::kE4M3x2;
  const uint32_t sign = std::signbit(v) ? 0x80u : 0u;
  if (std::isnan(v)) return 0x7f;
  const Exact r = std::fabs(ConvertReal(o, v));
  if (std::isinf(r)) return sign | (e4m3 ? 0x7fu : 0x7cu);
  if (r == 0) return o.relu ? 0 : sign;
  int exponent = 0;
  std::frexp(r, &exponent);
  const int mantissa_bits = f.digits - 1;
  const int place = std::max(exponent - f.digits, f.lowest);
  const auto significand = static_cast<uint32_t>(std::ldexp(r, -place));
  // Above the subnormals the hidden bit carries into the exponent field by addition.
  return sign | ((static_cast<uint32_t>(place - f.lowest) << mantissa_bits) + significand);
}
}  // namespace

float WidenFp8(Type type, uint32_t bits) {
  const bool e4m3 = type == Type::kE4M3x2;
  const Format f = FormatOf(type);
  const int mantissa_bits = f.digits - 1;
  const uint32_t magnitude = bits & 0x7fu;
  const float sign = bits & 0x80u ? -1.0f : 1.0f;
  if (e4m3 ? magnitude == 0x7f : magnitude > 0x7c) return std::numeric_limits<float>::quiet_NaN();
  if (!e4m3 && magnitude == 0x7c) return sign * std::numeric_limits<float>::infinity();
  const uint32_t exponent = magnitude >> mantissa_bits;
  const uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
  const uint32_t significand = exponent ? mantissa | 1u << mantissa_bits : mantissa;
  return sign * std::ldexp(static_cast<float>(significand), f.lowest + static_cast<int>(exponent ? exponent - 1 : 0));
}

namespace {

/// cvt.rn.satfinite.e4m3x2.{f32 a, b | f16x2}: the first source or the upper half goes to the upper byte.
void NarrowToFp8(Exec& x, const Op& op, uint32_t mask) {
  const ConvertOptions o = Unpack(op.imm);
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const bool pair = o.from == Type::kF16x2 || o.from == Type::kBF16x2;
  const auto half = [&](uint32_t bits) {
    return o.from == Type::kF16x2 ? HalfToFloat(static_cast<uint16_t>(bits))
                                  : BFloat16ToFloat(static_cast<uint16_t>(bits));
  };
  ForLanes(mask, [&](int l) {
    const float high = pair ? half(a[l] >> 16) : Lane<float>::Get(a, l);
    const float low = pair ? half(a[l]) : Lane<float>::Get(b, l);
    d[l] = NarrowFp8(o, high) << 8 | NarrowFp8(o, low);
  });
}
void WidenFromFp8(Exec& x, const Op& op, uint32_t mask) {
  const ConvertOptions o = Unpack(op.imm);
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    const auto half = [&](uint32_t bits) -> uint32_t {
      const float v = WidenFp8(o.from, bits & 255u);
      return FloatToHalf(o.relu && !(v > 0) && !std::isnan(v) ? 0.0f : v);
    };
    d[l] = half(a[l] >> 8) << 16 | half(a[l]);
  });
}

/// cvt to a pair of 16-bit floats with any rounding; a goes to the upper half.
void PackPairGeneric(Exec& x, const Op& op, uint32_t mask) {
  ConvertOptions o = Unpack(op.imm);
  o.to = o.to == Type::kF16x2 ? Type::kF16 : Type::kBF16;
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  ForLanes(mask, [&](int l) {
    uint32_t high = 0;
    uint32_t low = 0;
    ConvertLane(o, &high, a + l, 0);
    ConvertLane(o, &low, b + l, 0);
    d[l] = high << 16 | low;
  });
}

/// cvt.pack.sat: two integers clamped into the lower part of the result; c moves up by their width. `imm`: the width,
/// `sign_extend`: they are signed.
void PackIntegers(Exec& x, const Op& op, uint32_t mask) {
  const auto bits = static_cast<int>(op.imm);
  const uint32_t part = (1u << bits) - 1;
  const int32_t low = op.sign_extend ? -(1 << (bits - 1)) : 0;
  const int32_t high = static_cast<int32_t>(part) + low;
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = op.variant ? x.Source(op.src[2]) : nullptr;
  ForLanes(mask, [&](int l) {
    const auto clamp = [&](const uint32_t* s) {
      return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(s[l]), low, high)) & part;
    };
    const uint32_t above = c ? c[l] << (2 * bits) : 0;
    d[l] = above | clamp(a) << bits | clamp(b);
  });
}

// The conversions that dominate real kernels, as tight loops.
template <class A, class B>
void Extend(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<B>(x.Slot(op.dst), mask, [&](int l) { return static_cast<B>(Lane<A>::Get(a, l)); });
}
void HalfToSingle(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<float, true>(x.Slot(op.dst), mask, [&](int l) { return HalfToFloat(static_cast<uint16_t>(a[l])); });
}
void SingleToHalf(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<uint32_t, true>(x.Slot(op.dst), mask, [&](int l) { return uint32_t{FloatToHalf(Lane<float>::Get(a, l))}; });
}
/// cvt.sat.f32.f32, which exponentials begin with.
template <bool kFtz>
void Saturate(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<float>(x.Slot(op.dst), mask, [&](int l) {
    const float v = Flush<kFtz>(Lane<float>::Get(a, l));
    return v > 0 ? std::min(v, 1.0f) : 0.0f;
  });
}
void BrainToSingle(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<uint32_t>(x.Slot(op.dst), mask, [&](int l) { return a[l] << 16; });
}
void SingleToBrain(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<uint32_t, true>(x.Slot(op.dst), mask,
                         [&](int l) { return uint32_t{FloatToBFloat16(Lane<float>::Get(a, l))}; });
}

/// cvt.rn.f16x2.f32 d, a, b: a goes to the upper half.
template <uint16_t (*kNarrow)(float)>
void PackPair(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  ForLanes(mask, [&](int l) {
    d[l] = static_cast<uint32_t>(kNarrow(Lane<float>::Get(a, l))) << 16 | kNarrow(Lane<float>::Get(b, l));
  });
}

template <Rounding kRounding, class T>
T ToIntegral(T v) {
  if constexpr (kRounding == Rounding::kZero)
    return std::trunc(v);
  else if constexpr (kRounding == Rounding::kDown)
    return std::floor(v);
  else if constexpr (kRounding == Rounding::kUp)
    return std::ceil(v);
  else
    return std::nearbyint(v);
}

/// As Saturated, without a way over long double.
template <class A, class B, Rounding kRounding>
void RoundToType(Exec& x, const Op& op, uint32_t mask) {
  constexpr A kAbove = static_cast<A>(uint64_t{1} << (8 * sizeof(B) - 2)) * (std::is_signed_v<B> ? 2 : 4);
  constexpr A kLow = std::is_signed_v<B> ? -kAbove : A{0};
  constexpr B kNan = sizeof(A) == 4 && sizeof(B) < 8 ? B{0} : static_cast<B>(uint64_t{1} << (8 * sizeof(B) - 1));
  const uint32_t* a = x.Source(op.src[0]);
  Assign<B>(x.Slot(op.dst), mask, [&](int l) {
    const A v = ToIntegral<kRounding>(Lane<A>::Get(a, l));
    const B inside = static_cast<B>(v >= kLow && v < kAbove ? v : A{0});
    const B clamped = v >= kAbove ? std::numeric_limits<B>::max() : v < kLow ? std::numeric_limits<B>::min() : inside;
    return v != v ? kNan : clamped;
  });
}
template <class A, Rounding kRounding>
void RoundInPlace(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<A>(x.Slot(op.dst), mask, [&](int l) { return ToIntegral<kRounding>(Lane<A>::Get(a, l)); });
}
template <class A, Rounding kRounding>
Handler RoundedTo(Type to) {
  switch (to) {
    case Type::kS32:
      return RoundToType<A, int32_t, kRounding>;
    case Type::kU32:
      return RoundToType<A, uint32_t, kRounding>;
    case Type::kS64:
      return RoundToType<A, int64_t, kRounding>;
    case Type::kU64:
      return RoundToType<A, uint64_t, kRounding>;
    case Type::kF32:
      return sizeof(A) == 4 ? RoundInPlace<A, kRounding> : nullptr;
    case Type::kF64:
      return sizeof(A) == 8 ? RoundInPlace<A, kRounding> : nullptr;
    default:
      return nullptr;
  }
}
template <class A>
Handler FastRounding(const ConvertOptions& o) {
  switch (o.rounding) {
    case Rounding::kNearest:
      return RoundedTo<A, Rounding::kNearest>(o.to);
    case Rounding::kZero:
      return RoundedTo<A, Rounding::kZero>(o.to);
    case Rounding::kDown:
      return RoundedTo<A, Rounding::kDown>(o.to);
    case Rounding::kUp:
      return RoundedTo<A, Rounding::kUp>(o.to);
    default:
      return nullptr;
  }
}

template <class B>
Handler FromInteger(Type from) {
  switch (from) {
    case Type::kS16:
      return Extend<int16_t, B>;
    case Type::kU16:
      return Extend<uint16_t, B>;
    case Type::kS32:
      return Extend<int32_t, B>;
    case Type::kU32:
      return Extend<uint32_t, B>;
    case Type::kS64:
      return Extend<int64_t, B>;
    case Type::kU64:
      return Extend<uint64_t, B>;
    default:
      return nullptr;
  }
}

Handler FastConversion(const ConvertOptions& o) {
  const bool between_singles = o.to == Type::kF32 && o.from == Type::kF32;
  if (between_singles && o.sat && !o.finite && !o.relu && !o.integer_round)
    return o.ftz ? Saturate<true> : Saturate<false>;
  if (o.sat || o.finite || o.relu || o.ftz || o.wide_source || o.wide_destination) return nullptr;
  if (o.integer_round && o.from == Type::kF32) return FastRounding<float>(o);
  if (o.integer_round && o.from == Type::kF64) return FastRounding<double>(o);
  if (o.integer_round || o.rounding != Rounding::kNearest) return nullptr;
  if (o.to == Type::kF32 && !IsFloatType(o.from)) return FromInteger<float>(o.from);
  if (o.to == Type::kF64 && !IsFloatType(o.from)) return FromInteger<double>(o.from);
  const Type t = o.to;
  const Type f = o.from;
  if (t == Type::kF32 && f == Type::kF16) return HalfToSingle;
  if (t == Type::kF16 && f == Type::kF32) return SingleToHalf;
  if (t == Type::kF32 && f == Type::kBF16) return BrainToSingle;
  if (t == Type::kBF16 && f == Type::kF32) return SingleToBrain;
  if (t == Type::kF64 && f == Type::kF32) return Extend<float, double>;
  if (t == Type::kF32 && f == Type::kF64) return Extend<double, float>;
  if (ptx::BitsOf(t) == 64 && f == Type::kU32 && !IsFloatType(t)) return Extend<uint32_t, uint64_t>;
  if (ptx::BitsOf(t) == 64 && f == Type::kS32 && !IsFloatType(t)) return Extend<int32_t, int64_t>;
  if (ptx::BitsOf(t) == 32 && ptx::BitsOf(f) == 64 && !IsFloatType(t) && !IsFloatType(f))
    return Extend<uint64_t, uint32_t>;
  if (t == Type::kU32 && f == Type::kU16) return Extend<uint16_t, uint32_t>;
  return nullptr;
}

bool IsFp8Pair(Type type) { return type == Type::kE4M3x2 || type == Type::kE5M2x2; }

Handler PairConversion(const Form& form, const ConvertOptions& o) {
  if (IsFp8Pair(o.to)) {
    const bool known = o.from == Type::kF32 || o.from == Type::kF16x2 || o.from == Type::kBF16x2;
    return known && form.Has("rn") && form.Has("satfinite") ? NarrowToFp8 : nullptr;
  }
  if (IsFp8Pair(o.from)) return o.to == Type::kF16x2 && form.Has("rn") ? WidenFromFp8 : nullptr;
  if (o.from != Type::kF32 || !(form.Has("rn") || form.Has("rz"))) return nullptr;
  if (o.relu || o.finite || o.rounding != Rounding::kNearest) return PackPairGeneric;
  return o.to == Type::kF16x2 ? PackPair<FloatToHalf> : PackPair<FloatToBFloat16>;
}

/// cvt.pack.sat.convertType.s32{.b32}: the last type is .b32 when there is a third source.
Handler PackConversion(const Form& form, Op& op) {
  static constexpr std::pair<std::string_view, int> kNarrow[] = {{"16", 16}, {"8", 8}, {"4", 4}, {"2", 2}};
  const auto& modifiers = form.instruction->modifiers;
  if (modifiers.size() < 4 || modifiers[1] != "sat" || modifiers[3] != "s32") return nullptr;
  const std::string_view to = modifiers[2];
  const auto at = std::ranges::find(kNarrow, to.substr(1), &std::pair<std::string_view, int>::first);
  op.variant = modifiers.size() > 4;
  if (at == std::end(kNarrow) || (to[0] != 's' && to[0] != 'u') || (at->second == 16) == (op.variant != 0) ||
      form.instruction->operands.size() != (op.variant ? 4u : 3u))
    return nullptr;
  op.imm = static_cast<uint64_t>(at->second);
  op.sign_extend = to[0] == 's';
  return PackIntegers;
}

}  // namespace

Handler ConvertHandler(const Form& form, Op& op) {
  if (form.from == Type::kNone || form.Has("scaled") || form.Has("rs")) return nullptr;
  ConvertOptions o;
  o.to = form.from;
  o.from = form.type;
  o.ftz = form.Has("ftz");
  o.sat = form.Has("sat");
  o.finite = form.Has("satfinite");
  o.relu = form.Has("relu");
  o.wide_source = (op.variant & 1) != 0;
  o.wide_destination = (op.variant & 2) != 0;
  op.variant = 0;
  if (form.Has("pack")) return PackConversion(form, op);
  // Only integers have registers wider than their type.
  if ((o.wide_source && IsFloatType(o.from)) || (o.wide_destination && IsFloatType(o.to))) return nullptr;
  if (form.Has("rz") || form.Has("rzi")) o.rounding = Rounding::kZero;
  if (form.Has("rm") || form.Has("rmi")) o.rounding = Rounding::kDown;
  if (form.Has("rp") || form.Has("rpi")) o.rounding = Rounding::kUp;
  if (form.Has("rna")) o.rounding = Rounding::kAway;
  o.integer_round = form.Has("rni") || form.Has("rzi") || form.Has("rmi") || form.Has("rpi");
  op.imm = Pack(o);
  const bool pair = o.to == Type::kF16x2 || o.to == Type::kBF16x2 || IsFp8Pair(o.to) || IsFp8Pair(o.from);
  if (pair) return PairConversion(form, o);
  if (o.from == Type::kF16x2 || o.from == Type::kBF16x2 || o.from == Type::kTF32) return nullptr;
  if (o.to == Type::kTF32 && o.from != Type::kF32) return nullptr;
  if (Handler fast = FastConversion(o)) return fast;
  return ConvertGeneric;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
