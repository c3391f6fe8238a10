// Arithmetic and comparison of float16, bfloat16 and their pairs.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

// Every operation is done in float64, rounded to odd where it is not exact, so that the one
// rounding to 16 bits that follows is the only one that shows.
double ToOdd(double value, double error) {
  if (error == 0 || !std::isfinite(value)) return value;
  const auto bits = std::bit_cast<uint64_t>(value);
  if (bits & 1) return value;
  // The error points away from zero: one up in magnitude; toward zero: one down. Both are odd.
  return std::bit_cast<double>((error > 0) == (value > 0) ? bits + 1 : bits - 1);
}
double AddToOdd(double a, double b) {
  const double s = a + b;
  const double t = s - a;
  return ToOdd(s, (a - (s - t)) + (b - t));
}

struct HalfTraits {
  static constexpr double kSmallestNormal = 0x1p-14;
  static float Widen(uint16_t v) { return HalfToFloat(v); }
  static uint16_t Narrow(double v) {
    uint16_t bits = 0;
    StoreElement(DType::kFloat16, &bits, 0, v);
    return std::isnan(v) ? 0x7fff : bits;
  }
};
struct BrainTraits {
  static constexpr double kSmallestNormal = 0x1p-126;
  static float Widen(uint16_t v) { return BFloat16ToFloat(v); }
  static uint16_t Narrow(double v) {
    uint16_t bits = 0;
    StoreElement(DType::kBFloat16, &bits, 0, v);
    return std::isnan(v) ? 0x7fff : bits;
  }
};

struct HAdd {
  double operator()(double a, double b, double) const { return AddToOdd(a, b); }
};
struct HSub {
  double operator()(double a, double b, double) const { return AddToOdd(a, -b); }
};
struct HMul {
  double operator()(double a, double b, double) const { return a * b; }
};
struct HFma {  // the product of two 11-bit significands is exact
  double operator()(double a, double b, double c) const { return AddToOdd(a * b, c); }
};
/// fma.oob: a factor from outside of a tensor, as tensor copies fill it in, makes the result zero.
/// An H200 takes both signs of this one NaN for it, in float16 and bfloat16.
struct HFmaInside : HFma {
  static constexpr uint32_t kOutside = 0x7ff7;
};
struct HMin {
  double operator()(double a, double b, double) const {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  }
};
struct HMax {
  double operator()(double a, double b, double) const {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
  }
};
template <class F>
struct NanWins {
  double operator()(double a, double b, double c) const {
    return std::isnan(a) || std::isnan(b) ? std::nan("") : F{}(a, b, c);
  }
};
template <class F>
struct XorSignAbs {
  double operator()(double a, double b, double c) const {
    const double r = std::fabs(F{}(std::fabs(a), std::fabs(b), c));
    return std::signbit(a) != std::signbit(b) ? -r : r;
  }
};
struct HNeg {
  double operator()(double a, double, double) const { return -a; }
};
struct HAbs {
  double operator()(double a, double, double) const { return std::fabs(a); }
};
enum HalfFlag : uint8_t { kSaturate = 1, kRelu = 2, kFlush = 4 };

template <class Traits>
double FlushHalf(double v, bool flush) {
  return flush && std::fabs(v) < Traits::kSmallestNormal ? std::copysign(0.0, v) : v;
}

/// `variant`: HalfFlag bits.
template <class Traits, class F, int kHalves>
void HalfOp(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  const bool flush = op.variant & kFlush;
  ForLanes(mask, [&](int l) {
    uint32_t r = 0;
    for (int h = 0; h < kHalves; ++h) {
      const auto part = [&](const uint32_t* s) {
        return FlushHalf<Traits>(
            static_cast<double>(Traits::Widen(static_cast<uint16_t>(s[l] >> (16 * h)))), flush);
      };
      double v = F{}(part(a), part(b), part(c));
      if constexpr (requires { F::kOutside; }) {
        const auto outside = [&](const uint32_t* s) {
          return (s[l] >> (16 * h) & 0x7fffu) == F::kOutside;
        };
        if (outside(a) || outside(b)) v = 0;
      }
      if (op.variant & kSaturate) v = v > 0 ? std::min(v, 1.0) : 0.0;
      if (op.variant & kRelu) v = std::isnan(v) ? v : v > 0 ? v : 0.0;
      uint16_t bits = Traits::Narrow(v);
      if (flush && (static_cast<double>(std::fabs(Traits::Widen(bits))) < Traits::kSmallestNormal))
        bits &= 0x8000u;
      r |= static_cast<uint32_t>(bits) << (16 * h);
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

/// neg and abs touch the sign bit alone: NaNs keep their payload. `imm`: bits to keep, then bits to
/// flip.
template <uint32_t kKeep, uint32_t kFlip>
void SignBits(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { d[l] = (a[l] & kKeep) ^ kFlip; });
}
Handler SignHandler(const Form& form, bool abs) {
  if (form.Has("ftz")) return abs ? HalfFor<HAbs>(form.type) : HalfFor<HNeg>(form.type);
  const bool pair = form.type == Type::kF16x2 || form.type == Type::kBF16x2;
  if (abs) return pair ? SignBits<0x7fff7fffu, 0> : SignBits<0x7fffu, 0>;
  return pair ? SignBits<~0u, 0x80008000u> : SignBits<0xffffu, 0x8000u>;
}

template <class F>
Handler MinMax(const Form& form) {
  if (form.Has("xorsign"))
    return form.Has("NaN") ? HalfFor<XorSignAbs<NanWins<F>>>(form.type)
                           : HalfFor<XorSignAbs<F>>(form.type);
  return form.Has("NaN") ? HalfFor<NanWins<F>>(form.type) : HalfFor<F>(form.type);
}

/// Comparison of two halves of a pair or of single values; `imm`: comparison code, bit 4:
/// subnormals are zeros.
bool CompareReal(int code, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if ((code & 7) == 6) return !unordered;
  if ((code & 7) == 7) return unordered;
  if (unordered) return (code & 8) != 0;
  return CompareByCode(code & 7, a, b);
}
template <class Traits>
bool CompareHalf(const Op& op, uint32_t a, uint32_t b, int half) {
  const auto part = [&](uint32_t word) {
    return FlushHalf<Traits>(
        static_cast<double>(Traits::Widen(static_cast<uint16_t>(word >> (16 * half)))),
        (op.imm & 16) != 0);
  };
  return CompareReal(static_cast<int>(op.imm & 15), part(a), part(b));
}

/// `variant`: combination with the predicate in src[2], as in compare.cpp.
uint32_t Combined(const BlockState& x, const Op& op, uint32_t bits) {
  if (op.variant == 0) return bits;
  const uint32_t other = *x.Source(op.src[2]) ^ (op.variant & 0x80 ? ~0u : 0u);
  const int how = op.variant & 0x7f;
  return how == 1 ? bits & other : how == 2 ? bits | other : bits ^ other;
}
template <class Traits, int kHalves>
void HalfSetp(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  uint32_t bits[2] = {0, 0};
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    for (int h = 0; h < kHalves; ++h) {
      if (CompareHalf<Traits>(op, a[l], b[l], h)) bits[h] |= 1u << l;
    }
  }
  if (kHalves == 1) bits[1] = ~bits[0];
  const uint32_t results[2] = {Combined(x, op, bits[0]), Combined(x, op, bits[1])};
  if (op.dst >= 0) SetPredicate(x, op.dst, mask, results[0]);
  if (op.dst2 >= 0) SetPredicate(x, op.dst2, mask, results[1]);
}

/// set.CmpOp.dtype.stype on 16-bit floats: 1.0 of the destination's type, or all ones for an
/// integer, if the comparison holds. `dst2` holds the value for true in one half.
template <class Traits, int kHalves>
void HalfSet(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const auto one = static_cast<uint32_t>(op.dst2);
  uint32_t bits[2] = {0, 0};
  ForLanes(mask, [&](int l) {
    for (int h = 0; h < kHalves; ++h)
      bits[h] |= (CompareHalf<Traits>(op, a[l], b[l], h) ? 1u : 0u) << l;
  });
  for (uint32_t& word : bits) word = Combined(x, op, word);
  ForLanes(mask, [&](int l) {
    if (kHalves == 1)
      d[l] = (bits[0] >> l) & 1u ? one : 0u;
    else
      d[l] = ((bits[0] >> l) & 1u ? one & 0xffffu : 0u) | ((bits[1] >> l) & 1u ? one << 16 : 0u);
  });
}

template <template <class, int> class Maker>
Handler ForHalfType(Type type) {
  switch (type) {
    case Type::kF16:
      return Maker<HalfTraits, 1>::Make();
    case Type::kF16x2:
      return Maker<HalfTraits, 2>::Make();
    case Type::kBF16:
      return Maker<BrainTraits, 1>::Make();
    default:
      return Maker<BrainTraits, 2>::Make();
  }
}
template <class Traits, int kHalves>
struct SetpMaker {
  static Handler Make() { return HalfSetp<Traits, kHalves>; }
};
template <class Traits, int kHalves>
struct SetMaker {
  static Handler Make() { return HalfSet<Traits, kHalves>; }
};

int CompareCode(const std::string& name) {
  static constexpr std::pair<std::string_view, int> kCodes[] = {
      {"eq", 0},  {"ne", 1},  {"lt", 2},  {"le", 3},   {"gt", 4},   {"ge", 5},   {"num", 6},
      {"nan", 7}, {"equ", 8}, {"neu", 9}, {"ltu", 10}, {"leu", 11}, {"gtu", 12}, {"geu", 13}};
  for (const auto& [text, code] : kCodes) {
    if (text == name) return code;
  }
  return -1;
}

Handler CompareHandlerOfHalves(const Form& form, Op& op) {
  const int code = CompareCode(form.instruction->modifiers[0]);
  if (code < 0) return nullptr;
  op.imm = static_cast<uint64_t>(code) | (form.Has("ftz") ? 16u : 0u);
  if (form.instruction->opcode == "setp") return ForHalfType<SetpMaker>(form.type);
  const bool half = form.from == Type::kF16 || form.from == Type::kF16x2;
  const bool brain = form.from == Type::kBF16 || form.from == Type::kBF16x2;
  const bool narrow = form.from == Type::kU16 || form.from == Type::kS16;
  op.dst2 = half ? 0x3c00 : brain ? 0x3f80 : narrow ? 0xffff : -1;
  return ForHalfType<SetMaker>(form.type);
}

}  // namespace

Handler HalfHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  const Type type = form.type;
  const bool half = type == Type::kF16 || type == Type::kF16x2 || type == Type::kBF16 ||
                    type == Type::kBF16x2;
  if (!half) return nullptr;
  if (opcode == "set" || opcode == "setp") return CompareHandlerOfHalves(form, op);
  if (form.Has("rz") || form.Has("rm") || form.Has("rp")) return nullptr;
  op.variant = static_cast<uint8_t>((form.Has("sat") ? kSaturate : 0) |
                                    (form.Has("relu") ? kRelu : 0) |
                                    (form.Has("ftz") ? kFlush : 0));
  if (opcode == "add") return HalfFor<HAdd>(type);
  if (opcode == "sub") return HalfFor<HSub>(type);
  if (opcode == "mul") return HalfFor<HMul>(type);
  if (opcode == "fma") return form.Has("oob") ? HalfFor<HFmaInside>(type) : HalfFor<HFma>(type);
  if (opcode == "neg") return SignHandler(form, false);
  if (opcode == "abs") return SignHandler(form, true);
  if (opcode == "min") return MinMax<HMin>(form);
  if (opcode == "max") return MinMax<HMax>(form);
  if (opcode == "ex2" || opcode == "tanh") return SpecialHandler(form, op);
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
