// Where and when a block runs, as special registers tell it: the SM that holds it, its warps'
// places there, and the clocks.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// %smid of the block.
uint32_t SmOf(const BlockState& x);
/// %warpid of the warp that runs: its place among those that the SM can hold.
uint32_t WarpSlotOf(const BlockState& x);
/// %clock64 for the warp that runs: clocks of its SM since these were zero.
uint64_t ClockOf(const BlockState& x);
/// %globaltimer for the warp that runs, in nanoseconds since 1970.
uint64_t TimerOf(const BlockState& x);
/// Nanoseconds from the begin of the launch to the end of the block.
uint64_t EndOf(const BlockState& x);
/// nanosleep: the warp's clocks advance, and other warps run.
void Sleep(BlockState& x, const Op& op, uint32_t mask);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
