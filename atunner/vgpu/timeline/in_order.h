// A warp's clock where the machine code is known. Instructions issue in the order of the cubin,
// each after the stall count of the one before it and after the scoreboards that it waits for.
#pragma once

#include "atunner/vgpu/state/warp_clock.h"
#include "atunner/vgpu/timing/counts.h"
#include "atunner/vgpu/timing/sass_schedule.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Matches a kernel's operations with its machine code.
SassSchedule ScheduleOf(const Kernel& kernel, const MachineCode& code);

/// Per operation: 1 if a part with machine code begins with it.
std::vector<uint8_t> PartBeginnings(const SassSchedule& schedule);

/// Notes an operation that the current warp has run. The machine code of its part issues when the
/// next part begins.
void NoteOperation(BlockState& x, const Op& op, uint32_t pc, bool active);
/// Issues the machine code of what the warp has run so far.
void IssuePending(BlockState& x);
/// Adds the issued machine instructions to the counts.
void CountIssued(const BlockState& x, Counts& counts);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
