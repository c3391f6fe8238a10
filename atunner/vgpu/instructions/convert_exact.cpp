#include "atunner/vgpu/instructions/convert_exact.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

using ptx::Type;

uint64_t Pack(const ConvertOptions& o) {
  const bool flags[] = {o.ftz,           o.sat,         o.finite,          o.relu,
                        o.integer_round, o.wide_source, o.wide_destination};
  uint64_t v = static_cast<uint64_t>(o.to) | static_cast<uint64_t>(o.from) << 8 |
               static_cast<uint64_t>(o.rounding) << 16;
  for (size_t i = 0; i < std::size(flags); ++i) v |= uint64_t{flags[i]} << (24 + i);
  return v;
}

bool IsFloatType(Type type) {
  return type == Type::kF16 || type == Type::kBF16 || type == Type::kF32 || type == Type::kF64 ||
         type == Type::kTF32;
}

namespace {

bool IsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

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

// long double holds every source exactly, 64-bit integers included, so that each conversion rounds
// once.
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

/// A binary floating-point format: significand bits, exponent of the last place of its subnormals,
/// largest finite value.
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
  const bool inwards = rounding == Rounding::kZero || (rounding == Rounding::kDown && v > 0) ||
                       (rounding == Rounding::kUp && v < 0);
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
  if (std::isnan(v))
    return from != Type::kF64 && bits < 64 ? 0 : static_cast<int64_t>(uint64_t{1} << (bits - 1));
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
    return o.wide_destination ? Lane<int64_t>::Set(d, l, Truncated(o.to, r))
                              : StoreInteger(o.to, d, l, r);
  }
  const Exact real = o.from == Type::kU64 ? static_cast<Exact>(static_cast<uint64_t>(v))
                                          : static_cast<Exact>(v);
  StoreReal(o.to, d, l, ConvertReal(o, real));
}
// ---- 8-bit floats, always in pairs
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
  return sign * std::ldexp(static_cast<float>(significand),
                           f.lowest + static_cast<int>(exponent ? exponent - 1 : 0));
}

void ConvertGeneric(BlockState& x, const Op& op, uint32_t mask) {
  const ConvertOptions o = Unpack(op.imm);
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { ConvertLane(o, d, a, l); });
}

void NarrowToFp8(BlockState& x, const Op& op, uint32_t mask) {
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
void WidenFromFp8(BlockState& x, const Op& op, uint32_t mask) {
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

void PackPairGeneric(BlockState& x, const Op& op, uint32_t mask) {
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

void PackIntegers(BlockState& x, const Op& op, uint32_t mask) {
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

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
