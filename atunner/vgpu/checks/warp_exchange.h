// Values that lanes of a warp hand to each other through volatile shared memory, without a word to
// each other: since Volta lanes need not go in step. Volatile accesses take no part in the other
// checks, as flags are made of them, so only what cannot be a flag counts here: an access that both
// lanes executed at once, each at a place of its own, of values that more than a comparison uses.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Reads of the lanes `distinct` of `mask`, at shared addresses.
void CheckExchangedRead(BlockState& x, const Op& op, uint32_t mask, uint32_t distinct,
                        const uint64_t* addresses);
/// One of the writes of `mask`. `same_value`: it changes nothing.
void CheckExchangedWrite(BlockState& x, const Op& op, uint32_t mask, int lane, uint64_t address,
                         bool same_value);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
