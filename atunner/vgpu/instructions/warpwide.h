// Resolves the addresses of all lanes of a load or store by one test.
#pragma once

#include "atunner/vgpu/checks/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Addresses of the active lanes of an aligned access inside one allocation: the host bytes of lane
/// l are at base + offset of l. The offsets are the address register itself, or `own`.
struct Warpwide {
  std::byte* base = nullptr;
  const uint32_t* narrow = nullptr;
  const std::byte* wide = nullptr;  ///< offsets of 64 bits, as registers hold them
  uint64_t bias = 0;                ///< address in its space = offset + bias
  uint64_t low = 0;                 ///< the lowest offset; of kDense that of lane 0
  Layout layout = Layout::kApart;
  Space space = Space::kGlobal;
  const Range* range = nullptr;  ///< allocation in global memory
  KnownSpan* known = nullptr;    ///< span of the address register, if it holds the offsets
  uint64_t own[kLanes];

  std::byte* HostBytes(uint64_t offset) const {
    return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(base) + offset);
  }
  /// Lanes whose addresses are those of all active ones.
  uint32_t Distinct(uint32_t mask) const {
    if (layout == Layout::kSame) return 1;
    if (known == nullptr || mask != ~0u) return mask;
    uint32_t lanes = 0;
    for (uint32_t l = 0; l < known->period; l += known->run) lanes |= 1u << l;
    return lanes;
  }
  uint64_t Wide(int lane) const { return WideAt(wide, lane); }
  static uint64_t WideAt(const std::byte* offsets, int lane) {
    uint64_t offset;
    std::memcpy(&offset, offsets + 8 * lane, 8);
    return offset;
  }
  void UseOwn() {
    narrow = nullptr;
    wide = reinterpret_cast<const std::byte*>(own);
  }
  /// Calls f(function of a lane that gives its place).
  template <class F>
  void WithPlaces(F&& f) const {
    if (narrow != nullptr)
      f([this, offsets = narrow](int l) { return HostBytes(offsets[l]); });
    else
      f([this, offsets = wide](int l) { return HostBytes(WideAt(offsets, l)); });
  }
  /// Addresses in `space`, for checks and counts.
  const uint64_t* Addresses(uint32_t mask, uint64_t* to) const {
    if (narrow != nullptr)
      ForLanes(mask, [&](int l) { to[l] = narrow[l] + bias; });
    else
      ForLanes(mask, [&](int l) { to[l] = Wide(l) + bias; });
    return to;
  }
};

/// False where a lane needs a look of its own: another space or allocation, misalignment, an error.
bool Locate(BlockState& x, const Op& op, uint32_t mask, uint32_t bytes, Warpwide& w);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
