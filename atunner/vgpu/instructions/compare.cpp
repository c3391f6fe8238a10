// Comparison, selection and moves.
#include <bit>
#include <cmath>

#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

// ---- comparison
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
uint32_t CompareBits(const BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  uint32_t flags[kLanes];
  for (int l = 0; l < kLanes; ++l)
    flags[l] = F{}(Lane<T>::Get(a, l), Lane<T>::Get(b, l)) ? 1u << l : 0u;
  uint32_t bits = 0;
  for (uint32_t flag : flags) bits |= flag;
  return bits & mask;
}

/// The result of a comparison combined with a predicate, for setp and set. `variant` 1 = and, 2 =
/// or, 3 = xor; bit 7 negates the predicate in src[2].
uint32_t Combined(const BlockState& x, const Op& op, uint32_t bits) {
  if (op.variant == 0) return bits;
  const uint32_t other = *x.Source(op.src[2]) ^ (op.variant & 0x80 ? ~0u : 0u);
  switch (op.variant & 0x7f) {
    case 1:
      return bits & other;
    case 2:
      return bits | other;
    default:
      return bits ^ other;
  }
}

template <class T, class F>
void Setp(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t bits = CompareBits<T, F>(x, op, mask);
  // before the first write: the destination may be the third source
  const uint32_t result = Combined(x, op, bits);
  const uint32_t inverse = Combined(x, op, ~bits);
  if (op.dst >= 0) SetPredicate(x, op.dst, mask, result);
  if (op.dst2 >= 0) SetPredicate(x, op.dst2, mask, inverse);
}

/// set.CmpOp: a value instead of a predicate; `imm` holds the value for true (1.0f or all ones).
template <class T, class F>
void Set(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t bits = Combined(x, op, CompareBits<T, F>(x, op, mask));
  uint32_t* d = x.Slot(op.dst);
  const auto yes = static_cast<uint32_t>(op.imm);
  ForLanes(mask, [&](int l) { d[l] = (bits >> l) & 1u ? yes : 0u; });
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

template <class T, bool kSet>
Handler CompareFor(const std::string& name) {
  const auto make = [&]<class F>() -> Handler { return kSet ? Set<T, F> : Setp<T, F>; };
  if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, FlushedFloat>) {
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
      return form.Has("ftz") ? CompareFor<FlushedFloat, kSet>(name) : CompareFor<float, kSet>(name);
    case Type::kF64:
      return CompareFor<double, kSet>(name);
    default:
      return nullptr;
  }
}

template <class T>
void Selp(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t p = *x.Source(op.src[2]) ^ (op.variant ? ~0u : 0u);
  Assign<T>(x.Slot(op.dst), mask, [&](int l) {
    const T yes = Lane<T>::Get(a, l);
    const T no = Lane<T>::Get(b, l);
    return (p >> l) & 1u ? yes : no;
  });
}

struct Same {
  template <class T>
  T operator()(T a) const {
    return a;
  }
};

/// slct: a where c ≥ 0 (of type C), else b.
template <class T, class C>
void Slct(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  const auto at_least_zero = [&](int l) {
    if constexpr (std::is_same_v<C, FlushedFloat>)
      return Lane<C>::Get(c, l) >= FlushedFloat{0.0f};
    else
      return Lane<C>::Get(c, l) >= C{0};
  };
  ForLanes(mask, [&](int l) {
    Lane<T>::Set(d, l, at_least_zero(l) ? Lane<T>::Get(a, l) : Lane<T>::Get(b, l));
  });
}
template <class T>
Handler SlctFor(const Form& form) {
  if (form.type == Type::kS32) return Slct<T, int32_t>;
  if (form.type != Type::kF32) return nullptr;
  return form.Has("ftz") ? Slct<T, FlushedFloat> : Slct<T, float>;
}

template <class F>
Handler ByWidth(int bits, F&& of) {
  switch (bits) {
    case 16:
      return of(uint16_t{});
    case 32:
      return of(uint32_t{});
    case 64:
      return of(uint64_t{});
    default:
      return nullptr;
  }
}

}  // namespace

Handler CompareHandler(const Form& form, Op& op) {
  const ptx::Instruction& instruction = *form.instruction;
  const std::string& opcode = instruction.opcode;
  if (opcode == "setp") return CompareByType<false>(form, form.type);
  if (opcode == "set") {
    op.imm = form.from == Type::kF32 ? 0x3f800000u : ~0u;
    return CompareByType<true>(form, form.type);
  }
  if (opcode == "selp")
    return ByWidth(ptx::BitsOf(form.type), []<class T>(T) -> Handler { return Selp<T>; });
  if (opcode == "slct")
    return ByWidth(ptx::BitsOf(form.from), [&]<class T>(T) { return SlctFor<T>(form); });
  return nullptr;
}

namespace {

Handler MoveHandler(int bits) {
  switch (bits) {
    case 1:
      return [](BlockState& x, const Op& op, uint32_t mask) {
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

}  // namespace

void SetMove(Op& op, int bits) {
  op.run = MoveHandler(bits);
  op.copies_register = bits == 32;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
