// Races in shared memory between blocks of a cluster. What other blocks did to a word is remembered
// beside its shadow, and judged between synchronisations of the cluster: its barrier, a phase of
// any mbarrier, a fence of the word's owner. Volatile, relaxed and atomic accesses take no part.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// A lane of `x` reads or writes a word of `owner`, another block. False after reporting.
bool ReachInto(Exec& x, Exec& owner, const Op& op, int lane, uint64_t word, bool write);
/// A lane of `x` touches a word of its own that others reached into (kReachedInto). False after
/// reporting.
bool MeetReach(Exec& x, const Op& op, int lane, uint64_t word, bool write);
/// The last thread of the block has ended: others must not have been in its memory without word to
/// it.
void CheckLastReach(Exec& x);

/// Word of all that `from` did and heard so far reaches `to`, by whatever way.
void Tell(const Exec& from, Exec& to);
/// Likewise the whole cluster: a fence, an atomic, a volatile store.
void TellCluster(const Exec& x);
/// Whether `x` may know what the other block did in `epoch`.
bool HasHeard(const Exec& x, const Exec& other, uint32_t epoch);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
