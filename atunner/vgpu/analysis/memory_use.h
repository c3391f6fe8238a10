// What an instruction reads and writes besides registers.
#pragma once

#include <cstdint>

#include "atunner/ptx/module.h"

namespace atunner::vgpu {

/// Sets of memory spaces, one bit each.
constexpr uint8_t kGlobalSpace = 1, kSharedSpace = 2, kLocalSpace = 4, kAnySpace = 7;

struct MemoryUse {
  uint8_t reads = 0;   ///< spaces
  uint8_t writes = 0;  ///< spaces
  /// The access ends later than the instruction, or goes through descriptors.
  bool asynchronous = false;
};
/// Parameters and constants are no memory in this sense: a launch does not change them.
MemoryUse MemoryUseOf(const ptx::Instruction& instruction);

/// True for the test of a barrier in memory, of which loops wait for copies and other warps.
bool IsWait(const ptx::Instruction& instruction);

}  // namespace atunner::vgpu
