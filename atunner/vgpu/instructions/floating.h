// Handlers of float32 and float64 operations from function objects: rounding modes, .ftz and .sat.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>

#include "atunner/vgpu/instructions/fused.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// NaN becomes +0.
inline float Saturate(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }

/// True for operations on the bits, which keep them.
template <class F>
constexpr bool kKeepsNan = requires { requires F::kBitwise; };

/// float32 operation with .ftz and .sat as template switches.
template <class F, bool kFtz, bool kSat>
struct F32 {
  static constexpr bool kSlow = kCostly<F>;
  template <class... A>
  float operator()(A... a) const {
    const float r = Flush<kFtz>(F{}(Flush<kFtz>(a)...));
    if constexpr (kSat) return Saturate(r);
    if constexpr (kKeepsNan<F>) return r;
    return Canonical(r);
  }
};
/// Directed rounding through the machine's rounding mode; rare, so not vectorised. `volatile` keeps
/// the order.
template <class T, class F, int kArity, int kMode>
void Directed(BlockState& x, const Op& op, uint32_t mask) {
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

template <class F, int kArity, bool kFtz, bool kSat>
Handler Float32With(const Form& form) {
  using G = F32<F, kFtz, kSat>;
  if (Handler directed = DirectedFor<float, G, kArity>(form)) return directed;
  if constexpr (kArity == 1)
    return UnaryOp<float, G>;
  else if constexpr (kArity == 2)
    return BinaryOp<float, G>;
  else
    return TernaryOp<float, G>;
}
template <class F, int kArity>
Handler Float32(const Form& form) {
  const bool sat = form.Has("sat");
  if (form.Has("ftz"))
    return sat ? Float32With<F, kArity, true, true>(form)
               : Float32With<F, kArity, true, false>(form);
  return sat ? Float32With<F, kArity, false, true>(form)
             : Float32With<F, kArity, false, false>(form);
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
  if (form.type == ptx::Type::kF32) return Float32<F, kArity>(form);
  if (form.type == ptx::Type::kF64) return Float64<F, kArity>(form);
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
