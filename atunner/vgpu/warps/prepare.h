#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Puts a prepared BlockState at the start of a block, by its linear index in the grid.
void InitialiseBlock(BlockState& x, uint64_t block);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
