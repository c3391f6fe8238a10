#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Sets a prepared state to the start of a block, given by its linear index in the grid.
void InitialiseBlock(BlockState& x, uint64_t block);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
