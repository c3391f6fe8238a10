// The pace of the clocks that kernels can read.
#pragma once

#include "atunner/vgpu/state/decoded.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Fills Kernel::clocks if the kernel reads %clock, %globaltimer or their like: the typical clocks
/// from the issue of each operation to the next one's in a warp that waits for each result. They
/// need no launch, cost nothing while the kernel runs, and are the same in every run; the timeline
/// (timeline/timeline.cpp) is the model that estimates times.
void FillNominalClocks(Kernel& kernel);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
