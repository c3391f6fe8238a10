// Forward branches over a few instructions, and the two short ways of an if with an else: the
// assembler lets all lanes run them under a predicate, so that nothing waits for a branch and what
// follows may move ahead of it. How many are few was read off what ptxas 13.0 makes of bodies of 1
// to 24 instructions for sm_90.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Converts these branches: the instructions that they jump over wait for the predicate instead,
/// and the branches cost nothing.
void ConvertBranches(Kernel& kernel);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
