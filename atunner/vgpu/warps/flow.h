// How operations change what a warp's groups of lanes do next.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// The group that runs, and where it is.
struct Cursor {
  size_t index = 0;
  uint32_t pc = 0;
  uint32_t mask = 0;
  uint32_t limit = 0;
};

/// What follows an operation that changes the flow.
enum class Next : uint8_t {
  kContinue,  ///< the same group, at Cursor::pc
  kRegroup,   ///< the group's place is Cursor::pc, and the groups have changed
  kSwitch,    ///< the groups say everything
  kYield      ///< as kRegroup, and other warps have their turn
};

constexpr uint32_t kSpinLimit = 512;  ///< backward branches before a diverged sibling gets its turn

/// Merges groups at equal places and sorts by place: the deepest call and then the earliest
/// operation runs first, so that diverged lanes meet again.
void Normalise(Warp& warp);
/// The next place of another group: there the running one stops.
uint32_t Limit(const Warp& warp, size_t running);
/// Runs an operation whose flow is not kNone.
Next ChangeFlow(BlockState& x, const Op& op, Cursor& c, uint32_t active);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
