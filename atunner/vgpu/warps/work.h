// How much work the blocks of a launch do, and how far they may run.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Operations that a warp may run before the next one.
constexpr uint32_t kTurn = 20000;

struct RunLimits {
  double deadline = 0;
  uint64_t budget = 0;  ///< warp instructions per block
  uint32_t turn = kTurn;
  /// Per operation of the kernel, see WorkOf; nullptr = `work` is no limit
  const std::vector<uint32_t>* weights = nullptr;
  uint64_t work = ~uint64_t{0};  ///< blocks that have done so much together end
};

/// What a state's blocks have done: executions of operations by warps, times the operations'
/// weights. `kind`: equal for equal executions of each operation that has a weight.
struct Work {
  uint64_t amount = 0;
  uint64_t kind = 0;
};
Work WorkOf(const BlockState& x, const std::vector<uint32_t>& weights);

/// Runs co-scheduled blocks to their end, or to the limit of their work. Sets `outcome` if they do
/// not complete.
void RunCoScheduled(CoScheduledBlocks& blocks, const RunLimits& limits, LaunchOutcome& outcome);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
