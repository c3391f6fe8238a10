// Where the registers of a function lie. Kernels that compilers unroll name thousands, of which few
// are in use at any place: those that are never in use together share a slot, so that a warp's
// registers stay in the first-level cache.
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
/// Slots from `first` upwards. With `share`, registers that are not in use at the same place may
/// share; never those that may be read before they are written, nor those of products that run
/// asynchronously: the checks watch their slots.
RegisterSlots AssignSlots(const ptx::Function& function, int32_t first, bool share);

}  // namespace atunner::vgpu
