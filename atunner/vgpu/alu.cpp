// Integer, float32 and float64 arithmetic, logic, comparison and selection.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

template <class T, class F>
void Unary(Exec& x, const Op& op, uint32_t mask, F f) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { Lane<T>::Set(d, l, f(Lane<T>::Get(a, l))); });
}

template <class T, class F>
void Binary(Exec& x, const Op& op, uint32_t mask, F f) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  ForLanes(mask, [&](int l) { Lane<T>::Set(d, l, f(Lane<T>::Get(a, l), Lane<T>::Get(b, l))); });
}

template <class T, class F>
void Ternary(Exec& x, const Op& op, uint32_t mask, F f) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  ForLanes(mask, [&](int l) { Lane<T>::Set(d, l, f(Lane<T>::Get(a, l), Lane<T>::Get(b, l), Lane<T>::Get(c, l))); });
}

// Handlers are made from stateless function objects, so that each is one tight loop.
template <class T, class F>
void UnaryOp(Exec& x, const Op& op, uint32_t mask) {
  Unary<T>(x, op, mask, F{});
}
template <class T, class F>
void BinaryOp(Exec& x, const Op& op, uint32_t mask) {
  Binary<T>(x, op, mask, F{});
}
template <class T, class F>
void TernaryOp(Exec& x, const Op& op, uint32_t mask) {
  Ternary<T>(x, op, mask, F{});
}

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// ---- integers: arithmetic wraps, so it is done unsigned ------------------------------------------------------------
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct MulLo {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct MadLo {
  template <class T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c));
  }
};
struct MulHi {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 8) {
      if constexpr (std::is_signed_v<T>)
        return static_cast<T>((static_cast<__int128_t>(a) * b) >> 64);
      else
        return static_cast<T>((static_cast<__uint128_t>(a) * b) >> 64);
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<T>((static_cast<int64_t>(a) * b) >> (8 * sizeof(T)));
    } else {
      return static_cast<T>((static_cast<uint64_t>(a) * b) >> (8 * sizeof(T)));
    }
  }
};
struct MadHi {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(MulHi{}(a, b), c);
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});  // the ISA leaves it open; hardware gives all ones
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Sub{}(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? Sub{}(T{0}, a) : a;
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return Sub{}(T{0}, a);
  }
};
struct AddSat {
  template <class T>
  T operator()(T a, T b) const {
    const int64_t sum = static_cast<int64_t>(a) + b;
    return static_cast<T>(std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX));
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(c, static_cast<T>(a < b ? b - a : a - b));
  }
};

// ---- floats --------------------------------------------------------------------------------------------------------
template <bool kFtz>
float Flush(float v) {
  if constexpr (kFtz) {
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    if ((bits & 0x7f800000u) == 0) return std::bit_cast<float>(bits & 0x80000000u);
  }
  return v;
}
inline float Saturate(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }  // NaN becomes +0

/// float32 operation with .ftz and .sat as template switches.
template <class F, bool kFtz, bool kSat>
struct F32 {
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
struct FMin {  // a NaN operand loses; -0 < +0
  template <class T>
  T operator()(T a, T b) const {
    if (std::isnan(a)) return std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
};
struct FMax {
  template <class T>
  T operator()(T a, T b) const {
    if (std::isnan(a)) return std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
};
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
    return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};
struct FEx2 {
  float operator()(float a) const { return std::exp2(a); }
};
struct FLg2 {
  float operator()(float a) const { return std::log2(a); }
};
struct FSin {
  float operator()(float a) const { return static_cast<float>(std::sin(static_cast<double>(a))); }
};
struct FCos {
  float operator()(float a) const { return static_cast<float>(std::cos(static_cast<double>(a))); }
};
struct FTanh {
  float operator()(float a) const { return static_cast<float>(std::tanh(static_cast<double>(a))); }
};
struct FCopysign {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

/// Directed rounding through the machine's rounding mode; rare, so not vectorised. `volatile` keeps the order.
template <class T, class F, int kArity, int kMode>
void Directed(Exec& x, const Op& op, uint32_t mask) {
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

template <class F, int kArity>
Handler Float32(const Form& form) {
  const bool ftz = form.Has("ftz");
  const bool sat = form.Has("sat");
  if (!ftz && !sat) {
    if (Handler directed = DirectedFor<float, F, kArity>(form)) return directed;
  }
  if (form.Has("rz") || form.Has("rm") || form.Has("rp")) {
    // With flushing, rounding toward zero differs from nearest only in the last bit; do it exactly all the same.
    if (sat) return nullptr;
    return DirectedFor<float, F32<F, true, false>, kArity>(form);
  }
  const auto pick = [&]<bool kFtz, bool kSat>() -> Handler {
    using G = F32<F, kFtz, kSat>;
    if constexpr (kArity == 1)
      return UnaryOp<float, G>;
    else if constexpr (kArity == 2)
      return BinaryOp<float, G>;
    else
      return TernaryOp<float, G>;
  };
  if (ftz) return sat ? pick.template operator()<true, true>() : pick.template operator()<true, false>();
  return sat ? pick.template operator()<false, true>() : pick.template operator()<false, false>();
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

template <class F>
Handler IntegerBinary(Type type) {
  switch (type) {
    case Type::kU16:
      return BinaryOp<uint16_t, F>;
    case Type::kS16:
      return BinaryOp<int16_t, F>;
    case Type::kU32:
      return BinaryOp<uint32_t, F>;
    case Type::kS32:
      return BinaryOp<int32_t, F>;
    case Type::kU64:
      return BinaryOp<uint64_t, F>;
    case Type::kS64:
      return BinaryOp<int64_t, F>;
    default:
      return nullptr;
  }
}
template <class F>
Handler IntegerTernary(Type type) {
  switch (type) {
    case Type::kU16:
      return TernaryOp<uint16_t, F>;
    case Type::kS16:
      return TernaryOp<int16_t, F>;
    case Type::kU32:
      return TernaryOp<uint32_t, F>;
    case Type::kS32:
      return TernaryOp<int32_t, F>;
    case Type::kU64:
      return TernaryOp<uint64_t, F>;
    case Type::kS64:
      return TernaryOp<int64_t, F>;
    default:
      return nullptr;
  }
}

/// mul.wide / mad.wide: the result has twice the width.
template <class T, class W, bool kAdd>
void Wide(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  ForLanes(mask, [&](int l) {
    W r = static_cast<W>(static_cast<W>(Lane<T>::Get(a, l)) * static_cast<W>(Lane<T>::Get(b, l)));
    if constexpr (kAdd) r = Add{}(r, Lane<W>::Get(c, l));
    Lane<W>::Set(d, l, r);
  });
}
template <bool kAdd>
Handler WideFor(Type type) {
  switch (type) {
    case Type::kU16:
      return Wide<uint16_t, uint32_t, kAdd>;
    case Type::kS16:
      return Wide<int16_t, int32_t, kAdd>;
    case Type::kU32:
      return Wide<uint32_t, uint64_t, kAdd>;
    case Type::kS32:
      return Wide<int32_t, int64_t, kAdd>;
    default:
      return nullptr;
  }
}

Handler AddSubHandler(const Form& form, bool add) {
  if (form.Has("cc")) return nullptr;
  if (form.Has("sat") && form.type == Type::kS32 && add) return BinaryOp<int32_t, AddSat>;
  if (Handler floating = add ? Floating<FAdd, 2>(form) : Floating<FSub, 2>(form)) return floating;
  return add ? IntegerBinary<Add>(form.type) : IntegerBinary<Sub>(form.type);
}

Handler MulHandler(const Form& form) {
  if (Handler floating = Floating<FMul, 2>(form)) return floating;
  if (form.Has("wide")) return WideFor<false>(form.type);
  if (form.Has("hi")) return IntegerBinary<MulHi>(form.type);
  return form.Has("lo") ? IntegerBinary<MulLo>(form.type) : nullptr;
}

Handler MadHandler(const Form& form) {
  if (form.Has("cc")) return nullptr;
  if (Handler floating = Floating<FFma, 3>(form)) return floating;
  if (form.Has("wide")) return WideFor<true>(form.type);
  if (form.Has("hi")) return IntegerTernary<MadHi>(form.type);
  return form.Has("lo") ? IntegerTernary<MadLo>(form.type) : nullptr;
}

Handler MinMaxHandler(const Form& form, bool min) {
  if (form.Has("NaN")) return min ? Floating<FMinNan, 2>(form) : Floating<FMaxNan, 2>(form);
  if (form.Has("xorsign") || form.Has("relu")) return nullptr;
  if (Handler floating = min ? Floating<FMin, 2>(form) : Floating<FMax, 2>(form)) return floating;
  return min ? IntegerBinary<Min>(form.type) : IntegerBinary<Max>(form.type);
}

Handler AbsNegHandler(const Form& form, bool abs) {
  if (Handler floating = abs ? Floating<FAbs, 1>(form) : Floating<FNeg, 1>(form)) return floating;
  switch (form.type) {
    case Type::kS16:
      return abs ? UnaryOp<int16_t, Abs> : UnaryOp<int16_t, Neg>;
    case Type::kS32:
      return abs ? UnaryOp<int32_t, Abs> : UnaryOp<int32_t, Neg>;
    case Type::kS64:
      return abs ? UnaryOp<int64_t, Abs> : UnaryOp<int64_t, Neg>;
    default:
      return nullptr;
  }
}

/// dp4a: four 8-bit products summed into 32 bits.
template <class A, class B>
void Dp4a(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  ForLanes(mask, [&](int l) {
    uint32_t sum = c[l];
    for (int k = 0; k < 32; k += 8) sum += static_cast<uint32_t>(static_cast<A>(a[l] >> k) * static_cast<B>(b[l] >> k));
    d[l] = sum;
  });
}

// ---- logic ---------------------------------------------------------------------------------------------------------
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(a == 0);
  }
};

/// Shift amounts are 32-bit whatever is shifted, and clamp at the width.
template <class T, bool kLeft>
void Shift(Exec& x, const Op& op, uint32_t mask) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  ForLanes(mask, [&](int l) {
    const T v = Lane<T>::Get(a, l);
    const uint32_t n = b[l];
    T r;
    if constexpr (kLeft)
      r = n >= kBits ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(v) << n);
    else if constexpr (std::is_signed_v<T>)
      r = static_cast<T>(v >> (n >= kBits ? kBits - 1 : n));
    else
      r = n >= kBits ? T{0} : static_cast<T>(v >> n);
    Lane<T>::Set(d, l, r);
  });
}

template <class F>
Handler BitwiseBinary(int bits) {
  return bits == 16   ? BinaryOp<uint16_t, F>
         : bits == 32 ? BinaryOp<uint32_t, F>
         : bits == 64 ? BinaryOp<uint64_t, F>
                      : nullptr;
}

/// Predicates are one word of lane bits.
template <class F>
void PredicateLogic(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t r = F{}(*x.Source(op.src[0]), *x.Source(op.src[1]));
  *d = (*d & ~mask) | (r & mask);
}
void PredicateNot(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  *d = (*d & ~mask) | (~*x.Source(op.src[0]) & mask);
}

void Lop3(Exec& x, const Op& op, uint32_t mask) {
  const auto table = static_cast<uint32_t>(op.imm);
  Ternary<uint32_t>(x, op, mask, [table](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r = 0;
    if (table & 0x01) r |= ~a & ~b & ~c;
    if (table & 0x02) r |= ~a & ~b & c;
    if (table & 0x04) r |= ~a & b & ~c;
    if (table & 0x08) r |= ~a & b & c;
    if (table & 0x10) r |= a & ~b & ~c;
    if (table & 0x20) r |= a & ~b & c;
    if (table & 0x40) r |= a & b & ~c;
    if (table & 0x80) r |= a & b & c;
    return r;
  });
}

struct Prmt {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
    const uint64_t bytes = (static_cast<uint64_t>(b) << 32) | a;
    uint32_t r = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t nibble = (selector >> (4 * i)) & 15u;
      uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (nibble & 7u))) & 255u;
      if (nibble & 8u) byte = (byte & 128u) ? 255u : 0u;
      r |= byte << (8 * i);
    }
    return r;
  }
};

template <bool kLeft, bool kWrap>
struct FunnelShift {
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t amount) const {
    const uint32_t n = kWrap ? (amount & 31u) : std::min(amount, 32u);
    const uint64_t both = (static_cast<uint64_t>(high) << 32) | low;
    return kLeft ? static_cast<uint32_t>((both << n) >> 32) : static_cast<uint32_t>(both >> n);
  }
};

struct Popc {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
/// Unary with a 32-bit result whatever the source's width.
template <class T, class F>
void Census(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) { d[l] = F{}(Lane<T>::Get(a, l)); });
}
template <bool kShift>
struct BfindU {
  template <class T>
  uint32_t operator()(T a) const {
    if (a == 0) return ~0u;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(a));
    return kShift ? zeros : 8 * static_cast<uint32_t>(sizeof(T)) - 1 - zeros;
  }
};
template <bool kShift>
struct BfindS {
  template <class T>
  uint32_t operator()(T a) const {
    return BfindU<kShift>{}(static_cast<Unsigned<T>>(a < 0 ? ~a : a));
  }
};

template <class T>
T Reverse(T v) {
  T r = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) r = static_cast<T>(r | (((v >> i) & 1) << (8 * sizeof(T) - 1 - i)));
  return r;
}
struct Brev {
  template <class T>
  T operator()(T a) const {
    return Reverse(a);
  }
};

/// bfe: `len` bits from `pos`, sign-extended for signed types.
template <class T>
void Bfe(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  constexpr uint32_t kBits = 8 * sizeof(T);
  ForLanes(mask, [&](int l) {
    const T v = Lane<T>::Get(a, l);
    const uint32_t pos = b[l] & 255u;
    const uint32_t len = c[l] & 255u;
    Unsigned<T> r = 0;
    const bool negative = std::is_signed_v<T> && len > 0 && ((v >> std::min(pos + len - 1, kBits - 1)) & 1);
    for (uint32_t i = 0; i < kBits; ++i) {
      const bool bit = (i < len && pos + i < kBits) ? ((v >> (pos + i)) & 1) : negative;
      r |= static_cast<Unsigned<T>>(bit) << i;
    }
    Lane<T>::Set(d, l, static_cast<T>(r));
  });
}

template <class T>
void Bfi(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  const uint32_t* e = x.Source(op.src[3]);
  constexpr uint32_t kBits = 8 * sizeof(T);
  ForLanes(mask, [&](int l) {
    T r = Lane<T>::Get(b, l);
    const T v = Lane<T>::Get(a, l);
    const uint32_t pos = c[l] & 255u;
    const uint32_t len = e[l] & 255u;
    for (uint32_t i = 0; i < len && pos + i < kBits; ++i) {
      const T bit = static_cast<T>(T{1} << (pos + i));
      r = static_cast<T>((r & static_cast<T>(~bit)) | (((v >> i) & 1) ? bit : T{0}));
    }
    Lane<T>::Set(d, l, r);
  });
}

template <bool kClamp>
struct Bmsk {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    if (!kClamp) {
      a &= 31u;
      b &= 31u;
    }
    if (a >= 32 || b == 0) return 0;
    const uint64_t ones = b >= 32 ? 0xffffffffull : (uint64_t{1} << b) - 1;
    return static_cast<uint32_t>(ones << a);
  }
};

// ---- comparison ----------------------------------------------------------------------------------------------------
struct Eq {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Ne {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b && !(a != a) && !(b != b);
  }
};
struct Lt {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Le {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Ge {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Num {
  template <class T>
  bool operator()(T a, T b) const {
    return a == a && b == b;
  }
};
struct Nan {
  template <class T>
  bool operator()(T a, T b) const {
    return !(a == a && b == b);
  }
};
template <class F>
struct OrUnordered {
  template <class T>
  bool operator()(T a, T b) const {
    return F{}(a, b) || a != a || b != b;
  }
};
struct INe {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};

/// Lane bits of a comparison.
template <class T, class F>
uint32_t CompareBits(const Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  uint32_t flags[kLanes];
  for (int l = 0; l < kLanes; ++l) flags[l] = F{}(Lane<T>::Get(a, l), Lane<T>::Get(b, l)) ? 1u << l : 0u;
  uint32_t bits = 0;
  for (uint32_t flag : flags) bits |= flag;
  return bits & mask;
}

template <class T, class F>
void Setp(Exec& x, const Op& op, uint32_t mask) {
  uint32_t bits = CompareBits<T, F>(x, op, mask);
  // Combination with a third predicate: and, or, xor. `variant` holds which; bit 7 negates that predicate.
  uint32_t other = 0;
  if (op.variant) other = *x.Source(op.src[2]) ^ (op.variant & 0x80 ? ~0u : 0u);
  const auto combine = [&](uint32_t v) {
    switch (op.variant & 0x7f) {
      case 1:
        return v & other;
      case 2:
        return v | other;
      case 3:
        return v ^ other;
      default:
        return v;
    }
  };
  uint32_t* d = x.Slot(op.dst);
  *d = (*d & ~mask) | (combine(bits) & mask);
  if (op.dst2 >= 0) {
    uint32_t* d2 = x.Slot(op.dst2);
    *d2 = (*d2 & ~mask) | (combine(~bits) & mask);
  }
}

/// set.CmpOp: a value instead of a predicate; 1.0f or all ones. Bit 1 of imm: float destination.
template <class T, class F>
void Set(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t bits = CompareBits<T, F>(x, op, mask);
  uint32_t* d = x.Slot(op.dst);
  const uint32_t yes = op.imm ? 0x3f800000u : ~0u;
  ForLanes(mask, [&](int l) { d[l] = (bits >> l) & 1u ? yes : 0u; });
}

template <class T, bool kSet>
Handler CompareFor(const std::string& name) {
  const auto make = [&]<class F>() -> Handler { return kSet ? Set<T, F> : Setp<T, F>; };
  if constexpr (std::is_floating_point_v<T>) {
    if (name == "ne") return make.template operator()<Ne>();
    if (name == "equ") return make.template operator()<OrUnordered<Eq>>();
    if (name == "neu") return make.template operator()<OrUnordered<Ne>>();
    if (name == "ltu") return make.template operator()<OrUnordered<Lt>>();
    if (name == "leu") return make.template operator()<OrUnordered<Le>>();
    if (name == "gtu") return make.template operator()<OrUnordered<Gt>>();
    if (name == "geu") return make.template operator()<OrUnordered<Ge>>();
    if (name == "num") return make.template operator()<Num>();
    if (name == "nan") return make.template operator()<Nan>();
  } else {
    if (name == "ne") return make.template operator()<INe>();
    if (name == "lo") return make.template operator()<Lt>();
    if (name == "ls") return make.template operator()<Le>();
    if (name == "hi") return make.template operator()<Gt>();
    if (name == "hs") return make.template operator()<Ge>();
  }
  if (name == "eq") return make.template operator()<Eq>();
  if (name == "lt") return make.template operator()<Lt>();
  if (name == "le") return make.template operator()<Le>();
  if (name == "gt") return make.template operator()<Gt>();
  if (name == "ge") return make.template operator()<Ge>();
  return nullptr;
}

/// float32 with flushed operands.
struct FlushedFloat {
  float v;
  bool operator<(FlushedFloat o) const { return Flush<true>(v) < Flush<true>(o.v); }
  bool operator<=(FlushedFloat o) const { return Flush<true>(v) <= Flush<true>(o.v); }
  bool operator>(FlushedFloat o) const { return Flush<true>(v) > Flush<true>(o.v); }
  bool operator>=(FlushedFloat o) const { return Flush<true>(v) >= Flush<true>(o.v); }
  bool operator==(FlushedFloat o) const { return Flush<true>(v) == Flush<true>(o.v); }
  bool operator!=(FlushedFloat o) const { return Flush<true>(v) != Flush<true>(o.v); }
};

template <bool kSet>
Handler CompareByType(const Form& form, Type type) {
  const std::string& name = form.instruction->modifiers[0];
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return CompareFor<uint16_t, kSet>(name);
    case Type::kS16:
      return CompareFor<int16_t, kSet>(name);
    case Type::kB32:
    case Type::kU32:
      return CompareFor<uint32_t, kSet>(name);
    case Type::kS32:
      return CompareFor<int32_t, kSet>(name);
    case Type::kB64:
    case Type::kU64:
      return CompareFor<uint64_t, kSet>(name);
    case Type::kS64:
      return CompareFor<int64_t, kSet>(name);
    case Type::kF32:
      return CompareFor<float, kSet>(name);
    case Type::kF64:
      return CompareFor<double, kSet>(name);
    default:
      return nullptr;
  }
}

template <class T>
void Selp(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t p = *x.Source(op.src[2]) ^ (op.variant ? ~0u : 0u);
  ForLanes(mask, [&](int l) { Lane<T>::Set(d, l, (p >> l) & 1u ? Lane<T>::Get(a, l) : Lane<T>::Get(b, l)); });
}

struct Same {
  template <class T>
  T operator()(T a) const {
    return a;
  }
};

template <class C>
void Slct(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  ForLanes(mask, [&](int l) { d[l] = Lane<C>::Get(c, l) >= 0 ? a[l] : b[l]; });
}

}  // namespace

Handler ArithmeticHandler(const Form& form, Op&) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "add") return AddSubHandler(form, true);
  if (opcode == "sub") return AddSubHandler(form, false);
  if (opcode == "mul") return MulHandler(form);
  if (opcode == "mad" || opcode == "fma") return MadHandler(form);
  if (opcode == "mul24" && form.Has("lo")) return IntegerBinary<MulLo>(form.type);
  if (opcode == "mad24" && form.Has("lo")) return IntegerTernary<MadLo>(form.type);
  if (opcode == "min") return MinMaxHandler(form, true);
  if (opcode == "max") return MinMaxHandler(form, false);
  if (opcode == "abs") return AbsNegHandler(form, true);
  if (opcode == "neg") return AbsNegHandler(form, false);
  if (opcode == "div") {
    if (Handler floating = Floating<FDiv, 2>(form)) return floating;
    return IntegerBinary<Div>(form.type);
  }
  if (opcode == "rem") return IntegerBinary<Rem>(form.type);
  if (opcode == "sad") return IntegerTernary<Sad>(form.type);
  if (opcode == "copysign") return Floating<FCopysign, 2>(form);
  if (opcode == "dp4a") {
    const bool a = form.from == Type::kS32;
    const bool b = form.type == Type::kS32;
    if (a) return b ? Dp4a<int8_t, int8_t> : Dp4a<int8_t, uint8_t>;
    return b ? Dp4a<uint8_t, int8_t> : Dp4a<uint8_t, uint8_t>;
  }
  return nullptr;
}

Handler SpecialHandler(const Form& form, Op&) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "rcp") return Floating<FRcp, 1>(form);
  if (opcode == "sqrt") return Floating<FSqrt, 1>(form);
  if (opcode == "rsqrt") return Floating<FRsqrt, 1>(form);
  if (form.type != Type::kF32) return nullptr;
  if (opcode == "ex2") return Float32<FEx2, 1>(form);
  if (opcode == "lg2") return Float32<FLg2, 1>(form);
  if (opcode == "sin") return Float32<FSin, 1>(form);
  if (opcode == "cos") return Float32<FCos, 1>(form);
  if (opcode == "tanh") return Float32<FTanh, 1>(form);
  return nullptr;
}

Handler LogicHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  const int bits = ptx::BitsOf(form.type);
  if (form.type == Type::kPred) {
    if (opcode == "and") return PredicateLogic<And>;
    if (opcode == "or") return PredicateLogic<Or>;
    if (opcode == "xor") return PredicateLogic<Xor>;
    return opcode == "not" ? PredicateNot : nullptr;
  }
  if (opcode == "and") return BitwiseBinary<And>(bits);
  if (opcode == "or") return BitwiseBinary<Or>(bits);
  if (opcode == "xor") return BitwiseBinary<Xor>(bits);
  if (opcode == "not")
    return bits == 16 ? UnaryOp<uint16_t, Not> : bits == 32 ? UnaryOp<uint32_t, Not> : UnaryOp<uint64_t, Not>;
  if (opcode == "cnot")
    return bits == 16 ? UnaryOp<uint16_t, Cnot> : bits == 32 ? UnaryOp<uint32_t, Cnot> : UnaryOp<uint64_t, Cnot>;
  if (opcode == "shl")
    return bits == 16 ? Shift<uint16_t, true> : bits == 32 ? Shift<uint32_t, true> : Shift<uint64_t, true>;
  if (opcode == "shr") {
    const bool is_signed = form.type == Type::kS16 || form.type == Type::kS32 || form.type == Type::kS64;
    if (is_signed)
      return bits == 16 ? Shift<int16_t, false> : bits == 32 ? Shift<int32_t, false> : Shift<int64_t, false>;
    return bits == 16 ? Shift<uint16_t, false> : bits == 32 ? Shift<uint32_t, false> : Shift<uint64_t, false>;
  }
  if (opcode == "lop3" && bits == 32) {
    op.imm = form.instruction->operands.size() > 4 ? form.instruction->operands[4].bits : 0;
    return Lop3;
  }
  if (opcode == "prmt" && form.instruction->modifiers.size() == 1) return TernaryOp<uint32_t, Prmt>;
  if (opcode == "shf") {
    if (form.Has("l"))
      return form.Has("wrap") ? TernaryOp<uint32_t, FunnelShift<true, true>>
                              : TernaryOp<uint32_t, FunnelShift<true, false>>;
    return form.Has("wrap") ? TernaryOp<uint32_t, FunnelShift<false, true>>
                            : TernaryOp<uint32_t, FunnelShift<false, false>>;
  }
  if (opcode == "popc") return bits == 64 ? Census<uint64_t, Popc> : Census<uint32_t, Popc>;
  if (opcode == "clz") return bits == 64 ? Census<uint64_t, Clz> : Census<uint32_t, Clz>;
  if (opcode == "brev") return bits == 64 ? UnaryOp<uint64_t, Brev> : UnaryOp<uint32_t, Brev>;
  if (opcode == "bfind") {
    const bool shift = form.Has("shiftamt");
    switch (form.type) {
      case Type::kU32:
        return shift ? Census<uint32_t, BfindU<true>> : Census<uint32_t, BfindU<false>>;
      case Type::kU64:
        return shift ? Census<uint64_t, BfindU<true>> : Census<uint64_t, BfindU<false>>;
      case Type::kS32:
        return shift ? Census<int32_t, BfindS<true>> : Census<int32_t, BfindS<false>>;
      case Type::kS64:
        return shift ? Census<int64_t, BfindS<true>> : Census<int64_t, BfindS<false>>;
      default:
        return nullptr;
    }
  }
  if (opcode == "bfe") {
    switch (form.type) {
      case Type::kU32:
        return Bfe<uint32_t>;
      case Type::kS32:
        return Bfe<int32_t>;
      case Type::kU64:
        return Bfe<uint64_t>;
      case Type::kS64:
        return Bfe<int64_t>;
      default:
        return nullptr;
    }
  }
  if (opcode == "bfi") return bits == 64 ? Bfi<uint64_t> : Bfi<uint32_t>;
  if (opcode == "bmsk") return form.Has("clamp") ? BinaryOp<uint32_t, Bmsk<true>> : BinaryOp<uint32_t, Bmsk<false>>;
  return nullptr;
}

Handler CompareHandler(const Form& form, Op& op) {
  const ptx::Instruction& instruction = *form.instruction;
  const std::string& opcode = instruction.opcode;
  if (opcode == "setp" || opcode == "set") {
    if (form.type == Type::kF32 && form.Has("ftz") && opcode == "setp") {
      // Denormal operands compare as zeros. Equality with zero is the only everyday case, but all are served.
      const std::string& name = instruction.modifiers[0];
      if (name == "ne") return Setp<FlushedFloat, Ne>;
      if (name == "eq") return Setp<FlushedFloat, Eq>;
      if (name == "lt") return Setp<FlushedFloat, Lt>;
      if (name == "le") return Setp<FlushedFloat, Le>;
      if (name == "gt") return Setp<FlushedFloat, Gt>;
      if (name == "ge") return Setp<FlushedFloat, Ge>;
      if (name == "equ") return Setp<FlushedFloat, OrUnordered<Eq>>;
      if (name == "neu") return Setp<FlushedFloat, OrUnordered<Ne>>;
      if (name == "ltu") return Setp<FlushedFloat, OrUnordered<Lt>>;
      if (name == "leu") return Setp<FlushedFloat, OrUnordered<Le>>;
      if (name == "gtu") return Setp<FlushedFloat, OrUnordered<Gt>>;
      if (name == "geu") return Setp<FlushedFloat, OrUnordered<Ge>>;
      if (name == "num") return Setp<FlushedFloat, Num>;
      if (name == "nan") return Setp<FlushedFloat, Nan>;
      return nullptr;
    }
    if (opcode == "setp") return CompareByType<false>(form, form.type);
    op.imm = form.from == Type::kF32;
    return instruction.operands.size() == 3 ? CompareByType<true>(form, form.type) : nullptr;
  }
  if (opcode == "selp") {
    switch (ptx::BitsOf(form.type)) {
      case 16:
        return Selp<uint16_t>;
      case 32:
        return Selp<uint32_t>;
      case 64:
        return Selp<uint64_t>;
      default:
        return nullptr;
    }
  }
  if (opcode == "slct" && ptx::BitsOf(form.from) == 32) return form.type == Type::kF32 ? Slct<float> : Slct<int32_t>;
  return nullptr;
}

Handler MoveHandler(int bits) {
  switch (bits) {
    case 1:
      return [](Exec& x, const Op& op, uint32_t mask) {
        uint32_t* d = x.Slot(op.dst);
        *d = (*d & ~mask) | (*x.Source(op.src[0]) & mask);
      };
    case 16:
      return UnaryOp<uint16_t, Same>;
    case 32:
      return UnaryOp<uint32_t, Same>;
    case 64:
      return UnaryOp<uint64_t, Same>;
    default:
      return nullptr;
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
