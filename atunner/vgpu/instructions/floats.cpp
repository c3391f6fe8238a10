// float32 and float64 arithmetic.
#include <bit>
#include <cmath>
#include <limits>

#include "atunner/vgpu/instructions/floating.h"
#include "atunner/vgpu/instructions/fused.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

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
  static constexpr bool kBitwise = true;
  template <class T>
  T operator()(T a) const {
    return -a;
  }
};
struct FAbs {
  static constexpr bool kBitwise = true;
  template <class T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
/// A NaN operand loses; -0 < +0. Equal operands differ in the sign bit at most. No branches, so
/// that loops become vectors.
template <bool kLess>
struct FExtreme {
  template <class T>
  T operator()(T a, T b) const {
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    const auto p = std::bit_cast<Bits>(a);
    const auto q = std::bit_cast<Bits>(b);
    const T same = std::bit_cast<T>(kLess ? p | q : p & q);
    T r = (kLess ? a < b : a > b) ? a : b;
    r = a == b ? same : r;
    r = b != b ? a : r;
    return r != r ? std::numeric_limits<T>::quiet_NaN() : r;
  }
};
using FMin = FExtreme<true>;
using FMax = FExtreme<false>;
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
struct FCopysign {
  static constexpr bool kBitwise = true;
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

/// min and max with .NaN (a NaN operand wins) and .xorsign.abs (of magnitudes, with the product's
/// sign).
template <class F>
struct XorSignAbs {
  template <class T>
  T operator()(T a, T b) const {
    const T r = std::fabs(F{}(std::fabs(a), std::fabs(b)));
    return std::signbit(a) != std::signbit(b) ? -r : r;
  }
};
/// Applies a binary function to three operands, pair by pair.
template <class F>
struct OfThree {
  float operator()(float a, float b, float c) const { return F{}(F{}(a, b), c); }
};
template <class F, class FNan>
Handler MinMaxOfThree(const Form& form) {
  if (form.type != Type::kF32) return nullptr;
  if (form.Has("xorsign"))
    return form.Has("NaN") ? Float32<OfThree<XorSignAbs<FNan>>, 3>(form)
                           : Float32<OfThree<XorSignAbs<F>>, 3>(form);
  return form.Has("NaN") ? Float32<OfThree<FNan>, 3>(form) : Float32<OfThree<F>, 3>(form);
}
template <class F, class FNan>
Handler MinMax(const Form& form) {
  if (form.instruction->operands.size() == 4) return MinMaxOfThree<F, FNan>(form);
  if (form.Has("xorsign")) {
    if (form.type != Type::kF32) return nullptr;
    return form.Has("NaN") ? Float32<XorSignAbs<FNan>, 2>(form) : Float32<XorSignAbs<F>, 2>(form);
  }
  return form.Has("NaN") ? Floating<FNan, 2>(form) : Floating<F, 2>(form);
}

/// testp: lane bits of a class of float. `variant` counts the names below.
constexpr std::string_view kClasses[] = {"finite",     "infinite", "number",
                                         "notanumber", "normal",   "subnormal"};
template <class T>
void Testp(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  uint32_t bits = 0;
  ForLanes(mask, [&](int l) {
    const T v = Lane<T>::Get(a, l);
    const bool answers[] = {std::isfinite(v), std::isinf(v),    !std::isnan(v),
                            std::isnan(v),    std::isnormal(v), std::fpclassify(v) == FP_SUBNORMAL};
    bits |= (answers[op.variant] ? 1u : 0u) << l;
  });
  uint32_t* d = x.Slot(op.dst);
  *d = (*d & ~mask) | bits;
}
Handler TestpHandler(const Form& form, Op& op) {
  for (op.variant = 0; op.variant < 6; ++op.variant) {
    if (!form.Has(kClasses[op.variant])) continue;
    return form.type == Type::kF32   ? Testp<float>
           : form.type == Type::kF64 ? Testp<double>
                                     : nullptr;
  }
  return nullptr;
}

}  // namespace

const Handler kPlainFma = TernaryOp<float, F32<FFma, false, false>>;

Handler FloatHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  if (form.type != Type::kF32 && form.type != Type::kF64) return nullptr;
  if (opcode == "add") return Floating<FAdd, 2>(form);
  if (opcode == "sub") return Floating<FSub, 2>(form);
  if (opcode == "mul") return Floating<FMul, 2>(form);
  if (opcode == "mad" || opcode == "fma") return Floating<FFma, 3>(form);
  if (opcode == "min") return MinMax<FMin, FMinNan>(form);
  if (opcode == "max") return MinMax<FMax, FMaxNan>(form);
  if (opcode == "abs") return Floating<FAbs, 1>(form);
  if (opcode == "neg") return Floating<FNeg, 1>(form);
  if (opcode == "div") {
    const bool approximate = form.Has("approx") || form.Has("full");
    return approximate ? QuotientHandler(form) : Floating<FDiv, 2>(form);
  }
  if (opcode == "copysign") return Floating<FCopysign, 2>(form);
  if (opcode == "testp") return TestpHandler(form, op);
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
