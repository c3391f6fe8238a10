// Register slots of a function. Unrolled kernels name thousands of registers, of which few are live
// at the same time. Registers that are never live together share a slot, so that a warp's registers
// stay in the host's first-level cache.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/ptx/module.h"

namespace atunner::vgpu {

/// Slots of 32 bits and 32 lanes that a register takes; a predicate takes one.
uint32_t SlotsOfType(ptx::Type type);

struct RegisterSlots {
  std::vector<int32_t> first;  ///< per register
  int32_t end = 0;             ///< one past the last slot
};
/// Slots from `first` upwards. With `share`, registers that are not live at the same time may share
/// a slot, except those that may be read before they are written, and those of wgmma: the checks
/// keep state per slot of these.
RegisterSlots AssignSlots(const ptx::Function& function, int32_t first, bool share);

}  // namespace atunner::vgpu
