// The number of wavefronts (cycles of the load/store unit) of a warp's access to shared memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// The largest number of distinct words in one bank. Lanes that access the same word share it.
inline uint32_t Conflicts(const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  uint64_t words[kLanes * 4];
  int n = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint64_t address = addresses[std::countr_zero(m)];
    for (uint64_t w = address / 4; w <= (address + bytes - 1) / 4; ++w) {
      if (n == 0 || words[n - 1] != w) words[n++] = w;
    }
  }
  if (!std::is_sorted(words, words + n)) std::sort(words, words + n);
  n = static_cast<int>(std::unique(words, words + n) - words);
  uint8_t banks[32] = {};
  uint8_t worst = 1;
  for (int i = 0; i < n; ++i) worst = std::max(worst, ++banks[words[i] % 32]);
  return worst;
}

/// True if each lane accesses the same element as the lane whose number differs in the bits of
/// `apart`, as far as both are active.
inline bool InPairs(const uint64_t* addresses, uint32_t mask, int apart) {
  bool same = true;
  ForLanes(mask, [&](int l) {
    same &= (mask >> (l ^ apart) & 1) == 0 || addresses[l] == addresses[l ^ apart];
  });
  return same;
}

/// With 8 bytes per lane the halves of a warp go one after the other, with 16 bytes the quarters.
/// Where neighbouring lanes access the same element, twice as many lanes go together.
inline uint32_t Wavefronts(const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  if (bytes <= 4) return Conflicts(addresses, mask, bytes);
  const bool pairs = InPairs(addresses, mask, 1) || InPairs(addresses, mask, 2);
  const int lanes = (bytes <= 8 ? 16 : 8) * (pairs ? 2 : 1);
  uint32_t wavefronts = 0;
  for (int first = 0; first < kLanes; first += lanes) {
    const uint32_t turn = mask & static_cast<uint32_t>(((uint64_t{1} << lanes) - 1) << first);
    if (turn != 0) wavefronts += Conflicts(addresses, turn, bytes);
  }
  return wavefronts;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
