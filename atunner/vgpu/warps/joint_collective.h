// A collective that lanes of a warp execute at several places of the program, such as one shuffle
// in each branch of an `if`. Since Volta that is legal: what counts is that the instructions and
// their masks are the same.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// The groups of the warp that wait at other places for the collective `op`, which group `running`
/// executes with the lanes of `named`. Empty unless all these lanes are there.
std::vector<size_t> PartnersElsewhere(const BlockState& x, const Op& op, size_t running,
                                      uint32_t named);
/// Executes the collective for the running group and its partners; the partners go on behind it.
void RunJointly(BlockState& x, const Op& op, uint32_t mask, const std::vector<size_t>& partners);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
