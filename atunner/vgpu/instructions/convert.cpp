// Conversions between all scalar types: those that dominate kernels as tight loops, the others as
// convert_exact.cpp has them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/instructions/convert_exact.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

template <class A, class B>
void Extend(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<B>(x.Slot(op.dst), mask, [&](int l) { return static_cast<B>(Lane<A>::Get(a, l)); });
}
void HalfToSingle(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<float, true>(x.Slot(op.dst), mask,
                      [&](int l) { return HalfToFloat(static_cast<uint16_t>(a[l])); });
}
void SingleToHalf(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<uint32_t, true>(x.Slot(op.dst), mask,
                         [&](int l) { return uint32_t{FloatToHalf(Lane<float>::Get(a, l))}; });
}
/// cvt.sat.f32.f32, which exponentials begin with.
template <bool kFtz>
void Saturate(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<float>(x.Slot(op.dst), mask, [&](int l) {
    const float v = Flush<kFtz>(Lane<float>::Get(a, l));
    return v > 0 ? std::min(v, 1.0f) : 0.0f;
  });
}
void BrainToSingle(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<uint32_t>(x.Slot(op.dst), mask, [&](int l) { return a[l] << 16; });
}
void SingleToBrain(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<uint32_t, true>(x.Slot(op.dst), mask,
                         [&](int l) { return uint32_t{FloatToBFloat16(Lane<float>::Get(a, l))}; });
}

/// cvt.rn.f16x2.f32 d, a, b: a goes to the upper half.
template <uint16_t (*kNarrow)(float)>
void PackPair(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  ForLanes(mask, [&](int l) {
    d[l] = static_cast<uint32_t>(kNarrow(Lane<float>::Get(a, l))) << 16 |
           kNarrow(Lane<float>::Get(b, l));
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

/// The same as Saturated, without long double.
template <class A, class B, Rounding kRounding>
void RoundToType(BlockState& x, const Op& op, uint32_t mask) {
  constexpr A kAbove = static_cast<A>(uint64_t{1} << (8 * sizeof(B) - 2)) *
                       (std::is_signed_v<B> ? 2 : 4);
  constexpr A kLow = std::is_signed_v<B> ? -kAbove : A{0};
  constexpr B kNan = sizeof(A) == 4 && sizeof(B) < 8
                         ? B{0}
                         : static_cast<B>(uint64_t{1} << (8 * sizeof(B) - 1));
  const uint32_t* a = x.Source(op.src[0]);
  Assign<B>(x.Slot(op.dst), mask, [&](int l) {
    const A v = ToIntegral<kRounding>(Lane<A>::Get(a, l));
    const B inside = static_cast<B>(v >= kLow && v < kAbove ? v : A{0});
    const B clamped = v >= kAbove ? std::numeric_limits<B>::max()
                      : v < kLow  ? std::numeric_limits<B>::min()
                                  : inside;
    return v != v ? kNan : clamped;
  });
}
template <class A, Rounding kRounding>
void RoundInPlace(BlockState& x, const Op& op, uint32_t mask) {
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
  static constexpr std::pair<std::string_view, int> kNarrow[] = {
      {"16", 16}, {"8", 8}, {"4", 4}, {"2", 2}};
  const auto& modifiers = form.instruction->modifiers;
  if (modifiers.size() < 4 || modifiers[1] != "sat" || modifiers[3] != "s32") return nullptr;
  const std::string_view to = modifiers[2];
  const auto at = std::ranges::find(kNarrow, to.substr(1),
                                    &std::pair<std::string_view, int>::first);
  op.variant = modifiers.size() > 4;
  if (at == std::end(kNarrow) || (to[0] != 's' && to[0] != 'u') ||
      (at->second == 16) == (op.variant != 0) ||
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
  if ((o.wide_source && IsFloatType(o.from)) || (o.wide_destination && IsFloatType(o.to)))
    return nullptr;
  if (form.Has("rz") || form.Has("rzi")) o.rounding = Rounding::kZero;
  if (form.Has("rm") || form.Has("rmi")) o.rounding = Rounding::kDown;
  if (form.Has("rp") || form.Has("rpi")) o.rounding = Rounding::kUp;
  if (form.Has("rna")) o.rounding = Rounding::kAway;
  o.integer_round = form.Has("rni") || form.Has("rzi") || form.Has("rmi") || form.Has("rpi");
  op.imm = Pack(o);
  const bool pair = o.to == Type::kF16x2 || o.to == Type::kBF16x2 || IsFp8Pair(o.to) ||
                    IsFp8Pair(o.from);
  if (pair) return PairConversion(form, o);
  if (o.from == Type::kF16x2 || o.from == Type::kBF16x2 || o.from == Type::kTF32) return nullptr;
  if (o.to == Type::kTF32 && o.from != Type::kF32) return nullptr;
  if (Handler fast = FastConversion(o)) return fast;
  return ConvertGeneric;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
