// Runs the blocks of a launch on the threads of the host.
#pragma once

#include "atunner/vgpu/engine.h"
#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// More blocks than these are never run side by side.
constexpr uint64_t kMaxCoScheduled = 4096;

/// Runs all blocks, or those that the options select, and adds outcome and counts to `result`.
/// Returns how many machine instructions that is by op_cost.def.
uint64_t RunGrid(Launch& launch, const ExecOptions& options, ExecResult& result);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
