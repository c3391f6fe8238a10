// Divergence and reconvergence of a warp's lanes.
//
// Since Volta each lane has a program counter of its own. Here a warp is a list of groups (Warp::
// groups): the lanes of a group have the same program counter and execute together, like a vector.
// Most warps have one group all the time. Groups are sorted by call depth, deepest first, and then
// by program counter; the first group that does not wait runs. Because compilers lay out code so
// that joins come after the branches that lead to them, the group that is behind catches up, and
// both merge where their program counters meet.
//
// Example:                                    groups after the operation (program counter: lanes)
//
//     10  setp.lt %p, %tid, 8                 11: 0-31
//     11  @%p bra 14                          12: 8-31   14: 0-7         diverged
//     12  add ...                             13: 8-31   14: 0-7
//     13  sub ...                             14: 0-31                   reconverged at the limit
//     14  mul ...                             15: 0-31
//
//   * A branch splits off the lanes that jump (Branch). If all lanes of the group jump, it just
//   moves.
//   * Limit is the next program counter of another group at the same call depth. The running group
//     stops there (Next::kRegroup), and Normalise merges groups with equal counter, barrier and
//     depth.
//   * Collectives (shuffles, votes, mma) name their lanes by a mask. A group at a collective waits
//     while other lanes of the mask may still arrive; lanes that wait at the same operation join it
//     (ReleaseCollective in exec.cpp lets it run without lanes that cannot arrive).
//   * Barriers mark the group with the barrier's number (Group::barrier); the last arrival clears
//   it.
//   * A loop that polls memory could keep its group first for ever, while the lanes that would end
//   the
//     loop are in another group: a spin lock within a warp. After kSpinLimit backward branches the
//     groups take turns, as independent thread scheduling guarantees.
//   * A warp that polls memory (atomics, volatile loads) for another warp or block yields after
//     kPollsBeforeYield branches (Next::kYield), so that a round over all warps does not run it for
//     a whole slice.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// The group that runs, and its position.
struct Cursor {
  size_t index = 0;
  uint32_t pc = 0;
  uint32_t mask = 0;
  uint32_t limit = 0;
};

/// What happens after an operation that changes the flow.
enum class Next : uint8_t {
  kContinue,  ///< the same group continues at Cursor::pc
  kRegroup,   ///< the group is at Cursor::pc, and the groups have changed
  kSwitch,    ///< the groups have changed, and hold their program counters themselves
  kYield      ///< as kRegroup; then other warps run
};

constexpr uint32_t kSpinLimit = 512;  ///< backward branches before other groups of the warp run

/// Sorts the groups, deepest call and then earliest operation first, and merges those that are at
/// the same operation.
void Normalise(Warp& warp);
/// The smallest program counter of another group ahead: the running group stops there.
uint32_t Limit(const Warp& warp, size_t running);
/// Runs an operation whose flow is not kNone.
Next ChangeFlow(BlockState& x, const Op& op, Cursor& c, uint32_t active);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
