// Typed access to the lanes of a register slot.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "atunner/vgpu/state/decoded.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// A lane's value of type T in a slot; 8-byte types span two slots, narrower ones use the low bits
/// of 32.
template <class T>
struct Lane {
  static constexpr bool kWide = sizeof(T) == 8;
  using Store = std::conditional_t<kWide, uint64_t, uint32_t>;
  static Store Bits(T value) {
    if constexpr (sizeof(T) == 8)
      return std::bit_cast<uint64_t>(value);
    else if constexpr (sizeof(T) == 4)
      return std::bit_cast<uint32_t>(value);
    else if constexpr (sizeof(T) == 2)
      return std::bit_cast<uint16_t>(value);
    else
      return std::bit_cast<uint8_t>(value);
  }
  static T Get(const uint32_t* slot, int lane) {
    Store raw;
    std::memcpy(&raw, slot + ptrdiff_t{lane} * (kWide ? 2 : 1), sizeof raw);
    if constexpr (sizeof(T) == 8)
      return std::bit_cast<T>(raw);
    else if constexpr (sizeof(T) == 4)
      return std::bit_cast<T>(raw);
    else if constexpr (sizeof(T) == 2)
      return std::bit_cast<T>(static_cast<uint16_t>(raw));
    else
      return std::bit_cast<T>(static_cast<uint8_t>(raw));
  }
  static void Set(uint32_t* slot, int lane, T value) {
    const Store raw = Bits(value);
    std::memcpy(slot + ptrdiff_t{lane} * (kWide ? 2 : 1), &raw, sizeof raw);
  }
};

/// Applies `f(lane)` to the active lanes; the full-mask loop is the one compilers vectorise.
template <class F>
inline void ForLanes(uint32_t mask, F&& f) {
  if (mask == ~0u) {
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
