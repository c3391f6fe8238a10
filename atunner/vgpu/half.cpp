// Conversions between all scalar types, and arithmetic on float16, bfloat16 and their pairs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "atunner/model/dtype.h"
#include "atunner/vgpu/internal.h"

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

double RoundToInteger(double v, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(v);
    case Rounding::kDown:
      return std::floor(v);
    case Rounding::kUp:
      return std::ceil(v);
    default:
      return std::nearbyint(v);
  }
}

/// Rounds to `digits` significand bits with smallest exponent `lowest` (of the last place of subnormals).
double RoundToDigits(double v, int digits, int lowest, Rounding rounding) {
  if (v == 0 || !std::isfinite(v)) return v;
  int exponent = 0;
  std::frexp(v, &exponent);
  const int place = std::max(exponent - digits, lowest);
  const double scaled = std::ldexp(v, -place);
  const double r = rounding == Rounding::kAway ? std::copysign(std::floor(std::fabs(scaled) + 0.5), v)
                                               : RoundToInteger(scaled, rounding);
  return std::ldexp(r, place);
}

double RoundTo(Type type, double v, Rounding rounding) {
  const bool toward_zero_side =
      rounding == Rounding::kZero || (rounding == Rounding::kDown && v > 0) || (rounding == Rounding::kUp && v < 0);
  const auto limit = [&](double r, double largest) {
    if (std::fabs(r) <= largest || !std::isfinite(v)) return r;
    return std::copysign(toward_zero_side ? largest : std::numeric_limits<double>::infinity(), r);
  };
  switch (type) {
    case Type::kF16:
      return limit(RoundToDigits(v, 11, -24, rounding), 65504.0);
    case Type::kBF16:
      return limit(RoundToDigits(v, 8, -133, rounding), 0x1.fep127);
    case Type::kTF32:
      return limit(RoundToDigits(v, 11, -136, rounding), 0x1.ffcp127);
    case Type::kF32:
      return limit(RoundToDigits(v, 24, -149, rounding), std::numeric_limits<float>::max());
    default:
      return v;
  }
}

void StoreReal(Type type, uint32_t* slot, int lane, double v) {
  switch (type) {
    case Type::kF64:
      Lane<double>::Set(slot, lane, v);
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

int64_t Saturated(Type to, double v) {
  if (std::isnan(v))
    return 0;  // sm_75 and later; 64-bit gives the sign bit, as does hardware for f32 → s64 only in old parts
  const int bits = ptx::BitsOf(to);
  if (IsSigned(to)) {
    const double high = std::ldexp(1.0, bits - 1);
    if (v >= high) return bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
    if (v < -high) return bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
    return static_cast<int64_t>(v);
  }
  if (v <= 0) return 0;
  if (v >= std::ldexp(1.0, bits)) return bits == 64 ? -1 : (int64_t{1} << bits) - 1;
  return static_cast<int64_t>(static_cast<uint64_t>(v));
}

int64_t ClampInteger(Type to, Type from, int64_t v) {
  const int bits = ptx::BitsOf(to);
  if (bits == 64) return v;
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
  Type to, from;
  Rounding rounding;
  bool ftz, sat, relu, integer_round, wide_source, wide_destination;
};
uint64_t Pack(const ConvertOptions& o) {
  return static_cast<uint64_t>(o.to) | static_cast<uint64_t>(o.from) << 8 | static_cast<uint64_t>(o.rounding) << 16 |
         static_cast<uint64_t>(o.ftz) << 24 | static_cast<uint64_t>(o.sat) << 25 | static_cast<uint64_t>(o.relu) << 26 |
         static_cast<uint64_t>(o.integer_round) << 27 | static_cast<uint64_t>(o.wide_source) << 28 |
         static_cast<uint64_t>(o.wide_destination) << 29;
}
ConvertOptions Unpack(uint64_t v) {
  return {static_cast<Type>(v & 255),
          static_cast<Type>((v >> 8) & 255),
          static_cast<Rounding>((v >> 16) & 255),
          (v >> 24 & 1) != 0,
          (v >> 25 & 1) != 0,
          (v >> 26 & 1) != 0,
          (v >> 27 & 1) != 0,
          (v >> 28 & 1) != 0,
          (v >> 29 & 1) != 0};
}

double FlushSingle(double v) { return std::fabs(v) < 0x1p-126 ? std::copysign(0.0, v) : v; }

double ConvertReal(const ConvertOptions& o, double v) {
  if (o.ftz && o.from == Type::kF32) v = FlushSingle(v);
  if (o.integer_round)
    v = RoundToInteger(v, o.rounding);
  else
    v = RoundTo(o.to, v, o.rounding);
  if (o.ftz && o.to == Type::kF32) v = FlushSingle(v);
  if (o.sat) v = v > 0 ? std::min(v, 1.0) : 0.0;
  if (o.relu) v = v > 0 ? v : (std::isnan(v) ? v : 0.0);
  return v;
}

void ConvertGeneric(Exec& x, const Op& op, uint32_t mask) {
  const ConvertOptions o = Unpack(op.imm);
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    if (IsFloatType(o.from)) {
      double v = LoadReal(o.from, a, l);
      if (IsFloatType(o.to)) return StoreReal(o.to, d, l, ConvertReal(o, v));
      if (o.ftz && o.from == Type::kF32) v = FlushSingle(v);
      return StoreInteger(o.to, d, l, Saturated(o.to, RoundToInteger(v, o.rounding)));
    }
    // The low half of a lane of a 64-bit register is the narrower value.
    const int64_t v = o.wide_source ? LoadInteger(o.from, a + 2 * l, 0) : LoadInteger(o.from, a, l);
    if (!IsFloatType(o.to)) {
      const int64_t r = o.sat ? ClampInteger(o.to, o.from, v) : v;
      if (o.wide_destination) return Lane<int64_t>::Set(d, l, Truncated(o.to, r));
      return StoreInteger(o.to, d, l, r);
    }
    // 64-bit integers do not fit a double: round them once, to odd first where a second rounding follows.
    const bool is_unsigned = o.from == Type::kU64;
    double real = is_unsigned ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
    if (o.to == Type::kF32 && o.rounding == Rounding::kNearest) {
      return Lane<float>::Set(d, l, is_unsigned ? static_cast<float>(static_cast<uint64_t>(v)) : static_cast<float>(v));
    }
    StoreReal(o.to, d, l, RoundTo(o.to, real, o.rounding));
  });
}

// The conversions that dominate real kernels, as tight loops.
template <class A, class B>
void Extend(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { Lane<B>::Set(d, l, static_cast<B>(Lane<A>::Get(a, l))); });
}
void HalfToSingle(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { Lane<float>::Set(d, l, HalfToFloat(static_cast<uint16_t>(a[l]))); });
}
void SingleToHalf(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { d[l] = FloatToHalf(Lane<float>::Get(a, l)); });
}
void BrainToSingle(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { d[l] = a[l] << 16; });
}
void SingleToBrain(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { d[l] = FloatToBFloat16(Lane<float>::Get(a, l)); });
}

/// cvt.rn.f16x2.f32 d, a, b: a goes to the upper half.
template <uint16_t (*kNarrow)(float), bool kRelu>
void PackPair(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  ForLanes(mask, [&](int l) {
    float high = Lane<float>::Get(a, l);
    float low = Lane<float>::Get(b, l);
    if constexpr (kRelu) {
      high = std::max(high, 0.0f);
      low = std::max(low, 0.0f);
    }
    d[l] = static_cast<uint32_t>(kNarrow(high)) << 16 | kNarrow(low);
  });
}

Handler FastConversion(const ConvertOptions& o) {
  if (o.sat || o.relu || o.integer_round || o.ftz || o.wide_source || o.wide_destination ||
      o.rounding != Rounding::kNearest) {
    return nullptr;
  }
  const Type t = o.to;
  const Type f = o.from;
  if (t == Type::kF32 && f == Type::kF16) return HalfToSingle;
  if (t == Type::kF16 && f == Type::kF32) return SingleToHalf;
  if (t == Type::kF32 && f == Type::kBF16) return BrainToSingle;
  if (t == Type::kBF16 && f == Type::kF32) return SingleToBrain;
  if (t == Type::kF32 && f == Type::kS32) return Extend<int32_t, float>;
  if (t == Type::kF32 && f == Type::kU32) return Extend<uint32_t, float>;
  if (t == Type::kF64 && f == Type::kF32) return Extend<float, double>;
  if (t == Type::kF32 && f == Type::kF64) return Extend<double, float>;
  if (ptx::BitsOf(t) == 64 && f == Type::kU32 && !IsFloatType(t)) return Extend<uint32_t, uint64_t>;
  if (ptx::BitsOf(t) == 64 && f == Type::kS32 && !IsFloatType(t)) return Extend<int32_t, int64_t>;
  if (ptx::BitsOf(t) == 32 && ptx::BitsOf(f) == 64 && !IsFloatType(t) && !IsFloatType(f))
    return Extend<uint64_t, uint32_t>;
  if (t == Type::kU32 && f == Type::kU16) return Extend<uint16_t, uint32_t>;
  return nullptr;
}

// ---- 16-bit float arithmetic: exact in float (products, sums of two) or in double (fma), then rounded once
// ---------------
struct HalfTraits {
  static float Widen(uint16_t v) { return HalfToFloat(v); }
  static uint16_t Narrow(double v) {
    uint16_t bits = 0;
    StoreElement(DType::kFloat16, &bits, 0, v);
    return bits;
  }
};
struct BrainTraits {
  static float Widen(uint16_t v) { return BFloat16ToFloat(v); }
  static uint16_t Narrow(double v) {
    uint16_t bits = 0;
    StoreElement(DType::kBFloat16, &bits, 0, v);
    return bits;
  }
};

struct HAdd {
  double operator()(double a, double b, double) const { return a + b; }
};
struct HSub {
  double operator()(double a, double b, double) const { return a - b; }
};
struct HMul {
  double operator()(double a, double b, double) const { return a * b; }
};
struct HFma {
  double operator()(double a, double b, double c) const { return std::fma(a, b, c); }
};
struct HNeg {
  double operator()(double a, double, double) const { return -a; }
};
struct HAbs {
  double operator()(double a, double, double) const { return std::fabs(a); }
};
struct HMin {
  double operator()(double a, double b, double) const { return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b); }
};
struct HMax {
  double operator()(double a, double b, double) const { return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b); }
};
struct HMinNan {
  double operator()(double a, double b, double) const {
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
  }
};
struct HMaxNan {
  double operator()(double a, double b, double) const {
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
  }
};
struct HEx2 {
  double operator()(double a, double, double) const { return std::exp2(a); }
};
struct HTanh {
  double operator()(double a, double, double) const { return std::tanh(a); }
};

/// `variant`: bit 0 saturate, bit 1 relu.
template <class Traits, class F, int kHalves>
void HalfOp(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  ForLanes(mask, [&](int l) {
    uint32_t r = 0;
    for (int h = 0; h < kHalves; ++h) {
      const auto part = [&](const uint32_t* s) {
        return static_cast<double>(Traits::Widen(static_cast<uint16_t>(s[l] >> (16 * h))));
      };
      double v = F{}(part(a), part(b), part(c));
      if (op.variant & 1) v = v > 0 ? std::min(v, 1.0) : 0.0;
      if (op.variant & 2) v = std::isnan(v) ? v : std::max(v, 0.0);
      r |= static_cast<uint32_t>(Traits::Narrow(v)) << (16 * h);
    }
    d[l] = r;
  });
}

template <class F>
Handler HalfFor(Type type) {
  switch (type) {
    case Type::kF16:
      return HalfOp<HalfTraits, F, 1>;
    case Type::kF16x2:
      return HalfOp<HalfTraits, F, 2>;
    case Type::kBF16:
      return HalfOp<BrainTraits, F, 1>;
    case Type::kBF16x2:
      return HalfOp<BrainTraits, F, 2>;
    default:
      return nullptr;
  }
}

/// setp on 16-bit floats: one predicate, or two for pairs. `imm`: comparison code; `variant` as in setp of alu.cpp.
bool CompareReal(int code, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  switch (code & 7) {
    case 0:
      return unordered ? (code & 8) != 0 : a == b;
    case 1:
      return unordered ? (code & 8) != 0 : a != b;
    case 2:
      return unordered ? (code & 8) != 0 : a < b;
    case 3:
      return unordered ? (code & 8) != 0 : a <= b;
    case 4:
      return unordered ? (code & 8) != 0 : a > b;
    case 5:
      return unordered ? (code & 8) != 0 : a >= b;
    case 6:
      return !unordered;
    default:
      return unordered;
  }
}
template <class Traits, int kHalves>
void HalfSetp(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  uint32_t bits[2] = {0, 0};
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    for (int h = 0; h < kHalves; ++h) {
      const auto part = [&](const uint32_t* s) {
        return static_cast<double>(Traits::Widen(static_cast<uint16_t>(s[l] >> (16 * h))));
      };
      if (CompareReal(static_cast<int>(op.imm), part(a), part(b))) bits[h] |= 1u << l;
    }
  }
  if (kHalves == 1) bits[1] = ~bits[0];
  const int32_t slots[2] = {op.dst, op.dst2};
  for (int h = 0; h < 2; ++h) {
    if (slots[h] < 0) continue;
    uint32_t* d = x.Slot(slots[h]);
    *d = (*d & ~mask) | (bits[h] & mask);
  }
}

/// set.CmpOp.dtype.stype on 16-bit floats: 1.0 of the destination's type (or all ones for an integer) where it holds.
/// `imm`: comparison code; `variant`: 0 integer, 1 float16, 2 bfloat16 destination.
template <class Traits, int kHalves>
void HalfSet(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t one = op.variant == 1 ? 0x3c00u : op.variant == 2 ? 0x3f80u : 0xffffu;
  ForLanes(mask, [&](int l) {
    uint32_t r = 0;
    for (int h = 0; h < kHalves; ++h) {
      const auto part = [&](const uint32_t* s) {
        return static_cast<double>(Traits::Widen(static_cast<uint16_t>(s[l] >> (16 * h))));
      };
      if (CompareReal(static_cast<int>(op.imm), part(a), part(b))) r |= one << (16 * h);
    }
    if (kHalves == 1 && op.variant == 0 && r != 0) r = ~0u;
    d[l] = r;
  });
}

int CompareCode(const std::string& name) {
  static constexpr std::pair<std::string_view, int> kCodes[] = {
      {"eq", 0},  {"ne", 1},  {"lt", 2},  {"le", 3},   {"gt", 4},   {"ge", 5},   {"num", 6},
      {"nan", 7}, {"equ", 8}, {"neu", 9}, {"ltu", 10}, {"leu", 11}, {"gtu", 12}, {"geu", 13}};
  for (const auto& [text, code] : kCodes) {
    if (text == name) return code;
  }
  return -1;
}

}  // namespace

Handler ConvertHandler(const Form& form, Op& op) {
  const ptx::Instruction& instruction = *form.instruction;
  if (form.from == Type::kNone) return nullptr;
  ConvertOptions o{form.from,
                   form.type,
                   Rounding::kNearest,
                   form.Has("ftz"),
                   form.Has("sat") || form.Has("satfinite"),
                   form.Has("relu"),
                   false,
                   (op.variant & 1) != 0,
                   (op.variant & 2) != 0};
  // Only integers have registers wider than their type.
  if ((o.wide_source && IsFloatType(o.from)) || (o.wide_destination && IsFloatType(o.to))) return nullptr;
  op.variant = 0;
  if (o.to == Type::kF16x2 || o.to == Type::kBF16x2) {
    if (o.from != Type::kF32 || !form.Has("rn") || form.Has("satfinite")) return nullptr;
    if (o.to == Type::kF16x2) return o.relu ? PackPair<FloatToHalf, true> : PackPair<FloatToHalf, false>;
    return o.relu ? PackPair<FloatToBFloat16, true> : PackPair<FloatToBFloat16, false>;
  }
  if (form.Has("rz") || form.Has("rzi")) o.rounding = Rounding::kZero;
  if (form.Has("rm") || form.Has("rmi")) o.rounding = Rounding::kDown;
  if (form.Has("rp") || form.Has("rpi")) o.rounding = Rounding::kUp;
  if (form.Has("rna")) o.rounding = Rounding::kAway;
  o.integer_round = form.Has("rni") || form.Has("rzi") || form.Has("rmi") || form.Has("rpi");
  for (const std::string& modifier : instruction.modifiers) {
    if (modifier.starts_with("e4m3") || modifier.starts_with("e5m2") || modifier == "scaled" || modifier == "pack")
      return nullptr;
  }
  op.imm = Pack(o);
  if (Handler fast = FastConversion(o)) return fast;
  return ConvertGeneric;
}

Handler HalfHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  const Type type = form.type;
  const bool half = type == Type::kF16 || type == Type::kF16x2 || type == Type::kBF16 || type == Type::kBF16x2;
  if (!half) return nullptr;
  op.variant = static_cast<uint8_t>((form.Has("sat") ? 1 : 0) | (form.Has("relu") ? 2 : 0));
  if (opcode == "add") return HalfFor<HAdd>(type);
  if (opcode == "sub") return HalfFor<HSub>(type);
  if (opcode == "mul") return HalfFor<HMul>(type);
  if (opcode == "fma") return HalfFor<HFma>(type);
  if (opcode == "neg") return HalfFor<HNeg>(type);
  if (opcode == "abs") return HalfFor<HAbs>(type);
  if (opcode == "min") return form.Has("NaN") ? HalfFor<HMinNan>(type) : HalfFor<HMin>(type);
  if (opcode == "max") return form.Has("NaN") ? HalfFor<HMaxNan>(type) : HalfFor<HMax>(type);
  if (opcode == "ex2") return HalfFor<HEx2>(type);
  if (opcode == "tanh") return HalfFor<HTanh>(type);
  if (opcode == "set") {
    const int code = CompareCode(form.instruction->modifiers[0]);
    if (code < 0 || form.instruction->operands.size() != 3) return nullptr;
    op.imm = static_cast<uint64_t>(code);
    op.variant = form.from == Type::kF16 || form.from == Type::kF16x2     ? 1
                 : form.from == Type::kBF16 || form.from == Type::kBF16x2 ? 2
                                                                          : 0;
    switch (type) {
      case Type::kF16:
        return HalfSet<HalfTraits, 1>;
      case Type::kF16x2:
        return HalfSet<HalfTraits, 2>;
      case Type::kBF16:
        return HalfSet<BrainTraits, 1>;
      default:
        return HalfSet<BrainTraits, 2>;
    }
  }
  if (opcode == "setp") {
    const int code = CompareCode(form.instruction->modifiers[0]);
    if (code < 0 || form.instruction->operands.size() != 3) return nullptr;
    op.imm = static_cast<uint64_t>(code);
    op.variant = 0;
    switch (type) {
      case Type::kF16:
        return HalfSetp<HalfTraits, 1>;
      case Type::kF16x2:
        return HalfSetp<HalfTraits, 2>;
      case Type::kBF16:
        return HalfSetp<BrainTraits, 1>;
      default:
        return HalfSetp<BrainTraits, 2>;
    }
  }
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
