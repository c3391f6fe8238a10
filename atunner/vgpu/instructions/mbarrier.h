// The mbarrier object: 8 bytes of shared memory, in an encoding of our own (the ISA keeps it
// opaque).
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

struct Mbarrier {
  uint32_t pending = 0;   ///< arrivals that the current phase still needs
  uint32_t expected = 0;  ///< arrivals of the next phase
  int32_t bytes = 0;      ///< expected by expect_tx less completed
  bool phase = false;     ///< parity

  static Mbarrier Decode(uint64_t word) {
    return {static_cast<uint32_t>(word & 0xfffff), static_cast<uint32_t>(word >> 20 & 0xfffff),
            static_cast<int32_t>(static_cast<int64_t>(word << 2) >> 42), (word >> 63) != 0};
  }
  uint64_t Encode() const {
    return uint64_t{pending} | uint64_t{expected} << 20 |
           (static_cast<uint64_t>(static_cast<uint32_t>(bytes)) & 0x3fffff) << 40 |
           uint64_t{phase} << 63;
  }
};

/// The 8 bytes behind a shared address of this block or another of the cluster; nullptr after
/// reporting.
std::byte* MbarrierAt(BlockState& x, const Op& op, int lane, uint64_t address);
/// `bytes` of an asynchronous copy have landed.
void CompleteTransaction(BlockState& x, const Op& op, int lane, uint64_t address, int32_t bytes);
/// `count` arrivals that also expect `bytes` more. Returns the state before.
uint64_t ArriveAt(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t count,
                  int32_t bytes, bool drop);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
