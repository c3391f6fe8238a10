// Runs the blocks of a launch on the threads of the host.
#pragma once

#include "atunner/vgpu/engine.h"
#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// More blocks than these are never run side by side.
constexpr uint64_t kMaxCoScheduled = 4096;

/// A launch that notes what each block does. It keeps no counts.
struct GridLog {
  WorkLog* work = nullptr;
  const std::vector<uint32_t>* weights = nullptr;  ///< per operation of the kernel
  uint64_t budget = 0;  ///< warp instructions, after which the launch stops with kTimeout
  uint32_t turn = 0;    ///< operations that a warp may run before the next one
};

/// Runs all blocks, or those that the options select, and adds outcome and counts to `result`.
/// Returns how many machine instructions that is by op_cost.def.
uint64_t RunGrid(Launch& launch, const ExecOptions& options, ExecResult& result,
                 const GridLog* log = nullptr);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
