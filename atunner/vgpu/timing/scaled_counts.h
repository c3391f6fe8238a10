// Counts of some blocks as those of more blocks of their kind.
#pragma once

#include "atunner/vgpu/timing/counts.h"

namespace atunner::vgpu {

/// The counts of so many times the blocks: all sums. What is common to the blocks stays.
Counts Scaled(Counts counts, double times);

}  // namespace atunner::vgpu
