// Integer arithmetic.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

// ---- integers: arithmetic wraps, so it is done unsigned
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
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) +
                          static_cast<uint64_t>(c));
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
  static constexpr bool kSlow = true;
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
  static constexpr bool kSlow = true;
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
struct SubSat {
  template <class T>
  T operator()(T a, T b) const {
    const int64_t difference = static_cast<int64_t>(a) - b;
    return static_cast<T>(std::min<int64_t>(std::max<int64_t>(difference, INT32_MIN), INT32_MAX));
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(c, a < b ? Sub{}(b, a) : Sub{}(a, b));
  }
};

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
void Wide(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  Assign<W>(x.Slot(op.dst), mask, [&](int l) {
    const W r = static_cast<W>(static_cast<W>(Lane<T>::Get(a, l)) *
                               static_cast<W>(Lane<T>::Get(b, l)));
    if constexpr (kAdd)
      return Add{}(r, Lane<W>::Get(c, l));
    else
      return r;
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

// ---- extended precision: the carry is one bit per lane, kept in the warp
/// `variant` bit 0: carry in, bit 1: carry out.
template <class T, bool kSubtract>
void Carry(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  uint32_t out = 0;
  ForLanes(mask, [&](int l) {
    const T p = Lane<T>::Get(a, l);
    const T q = Lane<T>::Get(b, l);
    // A difference sets the carry if it does not borrow, because a - b is computed as a + ~b + 1.
    // Compilers read the carry by an addition.
    const T carried = (op.variant & 1) ? (x.warp->carry >> l) & 1u : (kSubtract ? 1u : 0u);
    const T addend = kSubtract ? static_cast<T>(~q) : q;
    const T r = p + addend + carried;
    const bool overflow = r < p || (carried && r == p);
    out |= (overflow ? 1u : 0u) << l;
    Lane<T>::Set(d, l, r);
  });
  if (op.variant & 2) x.warp->carry = (x.warp->carry & ~mask) | out;
}
/// mad.{lo,hi}.cc and madc: the addition carries, the product is the chosen half.
template <class T, bool kHigh>
void CarryMad(BlockState& x, const Op& op, uint32_t mask) {
  using U = Unsigned<T>;
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  uint32_t out = 0;
  ForLanes(mask, [&](int l) {
    const T p = Lane<T>::Get(a, l);
    const T q = Lane<T>::Get(b, l);
    const auto product = static_cast<U>(kHigh ? MulHi{}(p, q) : MulLo{}(p, q));
    const U in = (op.variant & 1) ? (x.warp->carry >> l) & 1u : 0u;
    const U r = product + Lane<U>::Get(c, l) + in;
    out |= ((r < product || (in && r == product)) ? 1u : 0u) << l;
    Lane<U>::Set(d, l, r);
  });
  if (op.variant & 2) x.warp->carry = (x.warp->carry & ~mask) | out;
}
Handler CarryHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  const bool in = opcode == "addc" || opcode == "subc" || opcode == "madc";
  op.variant = static_cast<uint8_t>((in ? 1 : 0) | (form.Has("cc") ? 2 : 0));
  const bool wide = ptx::BitsOf(form.type) == 64;
  const bool is_signed = form.type == Type::kS32 || form.type == Type::kS64;
  if (ptx::BitsOf(form.type) < 32) return nullptr;
  if (opcode.starts_with("add")) return wide ? Carry<uint64_t, false> : Carry<uint32_t, false>;
  if (opcode.starts_with("sub")) return wide ? Carry<uint64_t, true> : Carry<uint32_t, true>;
  if (form.Has("lo")) return wide ? CarryMad<uint64_t, false> : CarryMad<uint32_t, false>;
  if (!form.Has("hi")) return nullptr;
  if (wide) return is_signed ? CarryMad<int64_t, true> : CarryMad<uint64_t, true>;
  return is_signed ? CarryMad<int32_t, true> : CarryMad<uint32_t, true>;
}

// ---- 24-bit products
template <class T, bool kHigh>
struct Mul24 {
  T operator()(T a, T b) const {
    const auto cut = [](T v) -> int64_t {
      if constexpr (std::is_signed_v<T>)
        return static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8;
      else
        return v & 0xffffff;
    };
    const int64_t product = cut(a) * cut(b);
    return static_cast<T>(kHigh ? product >> 16 : product);
  }
};
template <class T, bool kHigh>
struct Mad24 {
  T operator()(T a, T b, T c) const { return Add{}(Mul24<T, kHigh>{}(a, b), c); }
};
template <class F>
struct ThenAddSat {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const { return AddSat{}(F{}(a, b), c); }
};
Handler Product24Handler(const Form& form, bool mad) {
  const bool is_signed = form.type == Type::kS32;
  if (!is_signed && form.type != Type::kU32) return nullptr;
  if (form.Has("sat"))
    return mad && is_signed && form.Has("hi") ? TernaryOp<int32_t, ThenAddSat<Mul24<int32_t, true>>>
                                              : nullptr;
  if (form.Has("hi")) {
    if (mad)
      return is_signed ? TernaryOp<int32_t, Mad24<int32_t, true>>
                       : TernaryOp<uint32_t, Mad24<uint32_t, true>>;
    return is_signed ? BinaryOp<int32_t, Mul24<int32_t, true>>
                     : BinaryOp<uint32_t, Mul24<uint32_t, true>>;
  }
  if (!form.Has("lo")) return nullptr;
  if (mad)
    return is_signed ? TernaryOp<int32_t, Mad24<int32_t, false>>
                     : TernaryOp<uint32_t, Mad24<uint32_t, false>>;
  return is_signed ? BinaryOp<int32_t, Mul24<int32_t, false>>
                   : BinaryOp<uint32_t, Mul24<uint32_t, false>>;
}

// ---- pairs of 16-bit integers
template <class T, class F>
struct Pairwise {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const auto part = [](uint32_t v, int h) { return static_cast<T>(v >> h); };
    const auto low = static_cast<uint16_t>(F{}(part(a, 0), part(b, 0)));
    const auto high = static_cast<uint16_t>(F{}(part(a, 16), part(b, 16)));
    return low | static_cast<uint32_t>(high) << 16;
  }
};
template <class F>
struct ThenRelu {
  template <class T>
  T operator()(T a, T b) const {
    return std::max<T>(F{}(a, b), 0);
  }
};
template <class F>
Handler PairHandler(const Form& form) {
  if (form.type == Type::kU16x2)
    return form.Has("relu") ? nullptr : BinaryOp<uint32_t, Pairwise<uint16_t, F>>;
  return form.Has("relu") ? BinaryOp<uint32_t, Pairwise<int16_t, ThenRelu<F>>>
                          : BinaryOp<uint32_t, Pairwise<int16_t, F>>;
}

Handler AddSubHandler(const Form& form, bool add) {
  if (form.type == Type::kU16x2 || form.type == Type::kS16x2)
    return add ? PairHandler<Add>(form) : nullptr;
  if (form.Has("sat")) {
    if (form.type != Type::kS32) return nullptr;
    return add ? BinaryOp<int32_t, AddSat> : BinaryOp<int32_t, SubSat>;
  }
  return add ? IntegerBinary<Add>(form.type) : IntegerBinary<Sub>(form.type);
}

Handler MulHandler(const Form& form) {
  if (form.Has("wide")) return WideFor<false>(form.type);
  if (form.Has("hi")) return IntegerBinary<MulHi>(form.type);
  return form.Has("lo") ? IntegerBinary<MulLo>(form.type) : nullptr;
}

Handler MadHandler(const Form& form) {
  if (form.Has("wide")) return WideFor<true>(form.type);
  if (form.Has("sat"))
    return form.Has("hi") && form.type == Type::kS32 ? TernaryOp<int32_t, ThenAddSat<MulHi>>
                                                     : nullptr;
  if (form.Has("hi")) return IntegerTernary<MadHi>(form.type);
  return form.Has("lo") ? IntegerTernary<MadLo>(form.type) : nullptr;
}

template <class F>
Handler MinMaxFor(const Form& form) {
  if (form.type == Type::kU16x2 || form.type == Type::kS16x2) return PairHandler<F>(form);
  if (form.Has("relu")) return form.type == Type::kS32 ? BinaryOp<int32_t, ThenRelu<F>> : nullptr;
  return IntegerBinary<F>(form.type);
}

Handler AbsNegHandler(const Form& form, bool abs) {
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
void Dp4a(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  ForLanes(mask, [&](int l) {
    uint32_t sum = c[l];
    for (int k = 0; k < 32; k += 8)
      sum += static_cast<uint32_t>(static_cast<A>(a[l] >> k) * static_cast<B>(b[l] >> k));
    d[l] = sum;
  });
}

/// dp2a: two 16-bit halves of a times two bytes of b (the lower or, `variant` = 1, the upper two),
/// plus c.
template <class A, class B>
void Dp2a(BlockState& x, const Op& op, uint32_t mask) {
  const int shift = op.variant ? 16 : 0;
  Ternary<uint32_t>(x, op, mask, [shift](uint32_t a, uint32_t b, uint32_t c) {
    for (int k = 0; k < 2; ++k)
      c += static_cast<uint32_t>(static_cast<A>(a >> (16 * k)) *
                                 static_cast<B>(b >> (shift + 8 * k)));
    return c;
  });
}
Handler DotHandler(const Form& form, Op& op) {
  const bool a = form.from == Type::kS32;
  const bool b = form.type == Type::kS32;
  if (form.instruction->opcode == "dp4a") {
    if (a) return b ? Dp4a<int8_t, int8_t> : Dp4a<int8_t, uint8_t>;
    return b ? Dp4a<uint8_t, int8_t> : Dp4a<uint8_t, uint8_t>;
  }
  if (!form.Has("lo") && !form.Has("hi")) return nullptr;
  op.variant = form.Has("hi");
  if (a) return b ? Dp2a<int16_t, int8_t> : Dp2a<int16_t, uint8_t>;
  return b ? Dp2a<uint16_t, int8_t> : Dp2a<uint16_t, uint8_t>;
}

}  // namespace

Handler IntegerHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  if (form.Has("cc") || opcode == "addc" || opcode == "subc" || opcode == "madc")
    return CarryHandler(form, op);
  if (opcode == "add") return AddSubHandler(form, true);
  if (opcode == "sub") return AddSubHandler(form, false);
  if (opcode == "mul") return MulHandler(form);
  if (opcode == "mad") return MadHandler(form);
  if (opcode == "mul24") return Product24Handler(form, false);
  if (opcode == "mad24") return Product24Handler(form, true);
  if (opcode == "min") return MinMaxFor<Min>(form);
  if (opcode == "max") return MinMaxFor<Max>(form);
  if (opcode == "abs") return AbsNegHandler(form, true);
  if (opcode == "neg") return AbsNegHandler(form, false);
  if (opcode == "div") return IntegerBinary<Div>(form.type);
  if (opcode == "rem") return IntegerBinary<Rem>(form.type);
  if (opcode == "sad") return IntegerTernary<Sad>(form.type);
  if (opcode == "dp4a" || opcode == "dp2a") return DotHandler(form, op);
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
