// Logic, shifts and bit fields.
#include <algorithm>
#include <bit>

#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

// ---- logic
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
void Shift(BlockState& x, const Op& op, uint32_t mask) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  Assign<T>(x.Slot(op.dst), mask, [&](int l) {
    const T v = Lane<T>::Get(a, l);
    const uint32_t n = b[l];
    const uint32_t inside = n >= kBits ? kBits - 1 : n;
    if constexpr (kLeft)
      return n >= kBits ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(v) << inside);
    else if constexpr (std::is_signed_v<T>)
      return static_cast<T>(v >> inside);
    else
      return n >= kBits ? T{0} : static_cast<T>(v >> inside);
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
void PredicateLogic(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t r = F{}(*x.Source(op.src[0]), *x.Source(op.src[1]));
  *d = (*d & ~mask) | (r & mask);
}
void PredicateNot(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  *d = (*d & ~mask) | (~*x.Source(op.src[0]) & mask);
}

uint32_t LookUp(uint32_t table, uint32_t a, uint32_t b, uint32_t c) {
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
}
void Lop3(BlockState& x, const Op& op, uint32_t mask) {
  const auto table = static_cast<uint32_t>(op.imm);
  Ternary<uint32_t>(x, op, mask,
                    [table](uint32_t a, uint32_t b, uint32_t c) { return LookUp(table, a, b, c); });
}
/// lop3.BoolOp: also a predicate, (result ≠ 0) and/or src[3]. `variant`: 1 and, 2 or; bit 7 negates
/// that predicate.
void Lop3Predicate(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t q = *x.Source(op.src[3]) ^ (op.variant & 0x80 ? ~0u : 0u);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  uint32_t bits = 0;
  uint32_t results[kLanes] = {};
  ForLanes(mask, [&](int l) {
    results[l] = LookUp(static_cast<uint32_t>(op.imm), a[l], b[l], c[l]);
    bits |= (results[l] ? 1u : 0u) << l;
  });
  if (op.dst >= 0) {
    uint32_t* d = x.Slot(op.dst);
    ForLanes(mask, [&](int l) { d[l] = results[l]; });
  }
  SetPredicate(x, op.dst2, mask, (op.variant & 0x7f) == 1 ? bits & q : bits | q);
}
Handler Lop3Handler(const Form& form, Op& op) {
  const auto& operands = form.instruction->operands;
  if (operands.size() < 5) return nullptr;
  op.imm = operands[4].bits;
  if (operands.size() == 5) return op.dst2 < 0 && op.dst >= 0 ? Lop3 : nullptr;
  if (op.dst2 < 0) return nullptr;
  op.variant = static_cast<uint8_t>((form.Has("and")  ? 1
                                     : form.Has("or") ? 2
                                                      : 0) |
                                    (operands[5].negated ? 0x80 : 0));
  return (op.variant & 0x7f) ? Lop3Predicate : nullptr;
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

/// prmt with a mode: the selector's low two bits choose one of four fixed patterns (nibbles, lowest
/// byte first).
template <int kMode>
struct PrmtMode {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
    static constexpr uint32_t kPatterns[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543},   // f4e
                                                 {0x5670, 0x6701, 0x7012, 0x0123},   // b4e
                                                 {0x0000, 0x1111, 0x2222, 0x3333},   // rc8
                                                 {0x3210, 0x3211, 0x3222, 0x3333},   // ecl
                                                 {0x0000, 0x1110, 0x2210, 0x3210},   // ecr
                                                 {0x1010, 0x3232, 0x1010, 0x3232}};  // rc16
    return Prmt{}(a, b, kPatterns[kMode][selector & 3u]);
  }
};
Handler PrmtHandler(const Form& form) {
  if (form.instruction->modifiers.size() == 1) return TernaryOp<uint32_t, Prmt>;
  if (form.Has("f4e")) return TernaryOp<uint32_t, PrmtMode<0>>;
  if (form.Has("b4e")) return TernaryOp<uint32_t, PrmtMode<1>>;
  if (form.Has("rc8")) return TernaryOp<uint32_t, PrmtMode<2>>;
  if (form.Has("ecl")) return TernaryOp<uint32_t, PrmtMode<3>>;
  if (form.Has("ecr")) return TernaryOp<uint32_t, PrmtMode<4>>;
  return form.Has("rc16") ? TernaryOp<uint32_t, PrmtMode<5>> : nullptr;
}

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
void Census(BlockState& x, const Op& op, uint32_t mask) {
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
  for (size_t i = 0; i < 8 * sizeof(T); ++i)
    r = static_cast<T>(r | (((v >> i) & 1) << (8 * sizeof(T) - 1 - i)));
  return r;
}
struct Brev {
  template <class T>
  T operator()(T a) const {
    return Reverse(a);
  }
};

/// A position or length of a bit field. The ISA allows 0 … 255. Of larger values an H200 uses the
/// low byte in the 32-bit forms, and 255 in the 64-bit forms, which are made of shifts.
template <class T>
uint32_t BitPlace(uint32_t value) {
  return sizeof(T) == 8 ? std::min(value, 255u) : value & 255u;
}

template <class T>
T LowBits(uint32_t count) {
  return count >= 8 * sizeof(T) ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << count) - 1);
}

/// bfe: `len` bits from `pos`, sign-extended for signed types.
template <class T>
void Bfe(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  constexpr uint32_t kBits = 8 * sizeof(T);
  ForLanes(mask, [&](int l) {
    const T v = Lane<T>::Get(a, l);
    const uint32_t pos = BitPlace<T>(b[l]);
    const uint32_t len = BitPlace<T>(c[l]);
    const bool negative = std::is_signed_v<T> && len > 0 &&
                          ((v >> std::min(pos + len - 1, kBits - 1)) & 1);
    const Unsigned<T> field = LowBits<Unsigned<T>>(std::min(len, kBits - std::min(pos, kBits)));
    const Unsigned<T> shifted = pos < kBits ? static_cast<Unsigned<T>>(v) >> pos : 0;
    Lane<T>::Set(
        d, l,
        static_cast<T>((shifted & field) | (negative ? static_cast<Unsigned<T>>(~field) : 0)));
  });
}

template <class T>
void Bfi(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  const uint32_t* e = x.Source(op.src[3]);
  constexpr uint32_t kBits = 8 * sizeof(T);
  ForLanes(mask, [&](int l) {
    const T under = Lane<T>::Get(b, l);
    const uint32_t pos = BitPlace<T>(c[l]);
    const uint32_t len = BitPlace<T>(e[l]);
    const T field = pos < kBits ? LowBits<T>(std::min(len, kBits)) << pos : 0;
    const T moved = pos < kBits ? Lane<T>::Get(a, l) << pos : 0;
    Lane<T>::Set(d, l, static_cast<T>((under & ~field) | (moved & field)));
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

/// szext: the low `n` bits, extended by sign or zeros; at 32 and more the value itself (or n mod 32
/// with .wrap).
template <bool kSigned, bool kWrap>
struct Szext {
  uint32_t operator()(uint32_t a, uint32_t n) const {
    if (kWrap) n &= 31u;
    if (n >= 32) return a;
    if (n == 0) return 0;
    const uint32_t up = a << (32 - n);
    return kSigned ? static_cast<uint32_t>(static_cast<int32_t>(up) >> (32 - n)) : up >> (32 - n);
  }
};
Handler SzextHandler(const Form& form) {
  const bool wrap = form.Has("wrap");
  if (form.type == Type::kS32)
    return wrap ? BinaryOp<uint32_t, Szext<true, true>> : BinaryOp<uint32_t, Szext<true, false>>;
  return wrap ? BinaryOp<uint32_t, Szext<false, true>> : BinaryOp<uint32_t, Szext<false, false>>;
}

/// fns: position of the n-th set bit from `base` upwards (n > 0) or downwards (n < 0); for
/// n = 0 `base` itself.
struct FindNthSet {
  uint32_t operator()(uint32_t mask, uint32_t base, uint32_t offset) const {
    const auto n = static_cast<int32_t>(offset);
    if (n == 0) return base < 32 && ((mask >> base) & 1u) ? base : ~0u;
    const int step = n > 0 ? 1 : -1;
    int64_t left = n > 0 ? int64_t{n} : -int64_t{n};
    for (int64_t i = base; i >= 0 && i < 32; i += step) {
      if (((mask >> i) & 1u) && --left == 0) return static_cast<uint32_t>(i);
    }
    return ~0u;
  }
};

template <class F>
Handler BitwiseUnary(int bits) {
  return bits == 16   ? UnaryOp<uint16_t, F>
         : bits == 32 ? UnaryOp<uint32_t, F>
         : bits == 64 ? UnaryOp<uint64_t, F>
                      : nullptr;
}
Handler PredicateHandler(const std::string& opcode) {
  if (opcode == "and") return PredicateLogic<And>;
  if (opcode == "or") return PredicateLogic<Or>;
  if (opcode == "xor") return PredicateLogic<Xor>;
  return opcode == "not" ? PredicateNot : nullptr;
}
Handler ShiftHandler(const Form& form, bool left) {
  switch (form.type) {
    case Type::kB16:
    case Type::kU16:
      return left ? Shift<uint16_t, true> : Shift<uint16_t, false>;
    case Type::kB32:
    case Type::kU32:
      return left ? Shift<uint32_t, true> : Shift<uint32_t, false>;
    case Type::kB64:
    case Type::kU64:
      return left ? Shift<uint64_t, true> : Shift<uint64_t, false>;
    case Type::kS16:
      return Shift<int16_t, false>;
    case Type::kS32:
      return Shift<int32_t, false>;
    case Type::kS64:
      return Shift<int64_t, false>;
    default:
      return nullptr;
  }
}
Handler FunnelHandler(const Form& form) {
  if (form.Has("l"))
    return form.Has("wrap") ? TernaryOp<uint32_t, FunnelShift<true, true>>
                            : TernaryOp<uint32_t, FunnelShift<true, false>>;
  return form.Has("wrap") ? TernaryOp<uint32_t, FunnelShift<false, true>>
                          : TernaryOp<uint32_t, FunnelShift<false, false>>;
}
Handler BfindHandler(const Form& form) {
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
Handler BfeHandler(Type type) {
  switch (type) {
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

}  // namespace

Handler LogicHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  const int bits = ptx::BitsOf(form.type);
  if (form.type == Type::kPred) return PredicateHandler(opcode);
  if (opcode == "and") return BitwiseBinary<And>(bits);
  if (opcode == "or") return BitwiseBinary<Or>(bits);
  if (opcode == "xor") return BitwiseBinary<Xor>(bits);
  if (opcode == "not") return BitwiseUnary<Not>(bits);
  if (opcode == "cnot") return BitwiseUnary<Cnot>(bits);
  if (opcode == "shl" || opcode == "shr") return ShiftHandler(form, opcode == "shl");
  if (opcode == "lop3" && bits == 32) return Lop3Handler(form, op);
  if (opcode == "prmt") return PrmtHandler(form);
  if (opcode == "shf" && bits == 32) return FunnelHandler(form);
  if (opcode == "popc") return bits == 64 ? Census<uint64_t, Popc> : Census<uint32_t, Popc>;
  if (opcode == "clz") return bits == 64 ? Census<uint64_t, Clz> : Census<uint32_t, Clz>;
  if (opcode == "brev") return bits == 64 ? UnaryOp<uint64_t, Brev> : UnaryOp<uint32_t, Brev>;
  if (opcode == "bfind") return BfindHandler(form);
  if (opcode == "bfe") return BfeHandler(form.type);
  if (opcode == "bfi") return bits == 64 ? Bfi<uint64_t> : Bfi<uint32_t>;
  if (opcode == "bmsk")
    return form.Has("clamp") ? BinaryOp<uint32_t, Bmsk<true>> : BinaryOp<uint32_t, Bmsk<false>>;
  if (opcode == "szext") return SzextHandler(form);
  if (opcode == "fns") return TernaryOp<uint32_t, FindNthSet>;
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
