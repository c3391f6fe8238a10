// Values that lanes of a warp exchange through volatile shared memory without synchronisation.
// Before Volta the lanes of a warp executed in lockstep, and such code was correct; since then it
// is a race. The other checks ignore volatile accesses, because flags are made of them. Here only
// accesses are reported that cannot be flags: both lanes executed the access at once, each at its
// own address, and the value is used by more than comparisons.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Checks volatile reads of the lanes `distinct` of `mask`, at shared addresses.
void CheckExchangedRead(BlockState& x, const Op& op, uint32_t mask, uint32_t distinct,
                        const uint64_t* addresses);
/// Checks one of the volatile writes of `mask`. `same_value`: it changes nothing.
void CheckExchangedWrite(BlockState& x, const Op& op, uint32_t mask, int lane, uint64_t address,
                         bool same_value);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
