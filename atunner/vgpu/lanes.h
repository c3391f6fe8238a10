// Loops over the lanes of a warp from stateless function objects, so that each handler is one tight loop.
#pragma once

#include <bit>
#include <type_traits>

#include "atunner/vgpu/internal.h"

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

/// .ftz: subnormals become zeros of their sign.
template <bool kFtz>
float Flush(float v) {
  if constexpr (kFtz) {
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    if ((bits & 0x7f800000u) == 0) return std::bit_cast<float>(bits & 0x80000000u);
  }
  return v;
}

/// Writes the predicate bits of the active lanes.
inline void SetPredicate(Exec& x, int32_t slot, uint32_t mask, uint32_t bits) {
  uint32_t* d = x.Slot(slot);
  *d = (*d & ~mask) | (bits & mask);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
