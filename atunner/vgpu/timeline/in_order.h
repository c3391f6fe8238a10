// A warp's clock where the machine code is known: instructions issue in the order of the cubin,
// each after the stall of the one before and after the scoreboards that it waits for.
#pragma once

#include "atunner/vgpu/state/warp_clock.h"
#include "atunner/vgpu/timing/counts.h"
#include "atunner/vgpu/timing/sass_schedule.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// How a kernel's operations meet its machine code.
Schedule ScheduleOf(const Kernel& kernel, const MachineCode& code);

/// Per operation: a part begins with it that has machine code.
std::vector<uint8_t> PartBeginnings(const Schedule& schedule);

/// One operation of the current warp has run: the machine code of its part issues when the next
/// part begins.
void NoteOperation(BlockState& x, const Op& op, uint32_t pc, bool active);
/// What the warp has run so far issues.
void IssuePending(BlockState& x);
/// Adds what was issued to the counts.
void CountIssued(const BlockState& x, Counts& counts);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
