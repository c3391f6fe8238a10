// Loops over the lanes of a warp from stateless function objects, so that each handler is one tight
// loop.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// A comparison by its code: eq, ne, lt, le, gt, ge.
template <class T>
bool CompareByCode(int code, T a, T b) {
  switch (code) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

/// True for function objects that should be skipped for inactive lanes: calls of the mathematical
/// library, divisions.
template <class F>
constexpr bool kCostly = requires { requires F::kSlow; };

/// Writes `value(lane)` to a register of the active lanes. All lanes are computed even if only some
/// are active, because vector instructions take no more time. The registers that `value` reads must
/// be `to` itself or not overlap it, and it must have no side effect.
template <class T, bool kSkip = false, class V>
void Assign(uint32_t* to, uint32_t mask, V&& value) {
  using Store = typename Lane<T>::Store;
  constexpr ptrdiff_t kStep = Lane<T>::kWide ? 2 : 1;
  if (mask == ~0u) {
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) Lane<T>::Set(to, l, value(l));
  } else if constexpr (kSkip) {
    for (; mask != 0; mask &= mask - 1)
      Lane<T>::Set(to, std::countr_zero(mask), value(std::countr_zero(mask)));
  } else {
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) {
      Store old;
      std::memcpy(&old, to + l * kStep, sizeof old);
      const Store fresh = Lane<T>::Bits(value(l));
      const Store raw = (mask >> l) & 1u ? fresh : old;
      std::memcpy(to + l * kStep, &raw, sizeof raw);
    }
  }
}

template <class T, class F>
void Unary(BlockState& x, const Op& op, uint32_t mask, F f) {
  const uint32_t* a = x.Source(op.src[0]);
  Assign<T, kCostly<F>>(x.Slot(op.dst), mask,
                        [&](int l) { return static_cast<T>(f(Lane<T>::Get(a, l))); });
}

template <class T, class F>
void Binary(BlockState& x, const Op& op, uint32_t mask, F f) {
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  Assign<T, kCostly<F>>(x.Slot(op.dst), mask, [&](int l) {
    return static_cast<T>(f(Lane<T>::Get(a, l), Lane<T>::Get(b, l)));
  });
}

template <class T, class F>
void Ternary(BlockState& x, const Op& op, uint32_t mask, F f) {
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  Assign<T, kCostly<F>>(x.Slot(op.dst), mask, [&](int l) {
    return static_cast<T>(f(Lane<T>::Get(a, l), Lane<T>::Get(b, l), Lane<T>::Get(c, l)));
  });
}

// Handlers are made from stateless function objects, so that each is one tight loop.
template <class T, class F>
void UnaryOp(BlockState& x, const Op& op, uint32_t mask) {
  Unary<T>(x, op, mask, F{});
}
template <class T, class F>
void BinaryOp(BlockState& x, const Op& op, uint32_t mask) {
  Binary<T>(x, op, mask, F{});
}
template <class T, class F>
void TernaryOp(BlockState& x, const Op& op, uint32_t mask) {
  Ternary<T>(x, op, mask, F{});
}

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// .ftz: subnormals become zeros of their sign.
template <bool kFtz>
float Flush(float v) {
  if constexpr (kFtz) {
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
  }
  return v;
}

/// Writes the predicate bits of the active lanes.
inline void SetPredicate(BlockState& x, int32_t slot, uint32_t mask, uint32_t bits) {
  uint32_t* d = x.Slot(slot);
  *d = (*d & ~mask) | (bits & mask);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
