// Races in shared memory between blocks of a cluster. What other blocks did to a word is remembered
// beside its shadow, and judged between synchronisations of the cluster: its barrier, a phase of
// any mbarrier, a fence of the word's owner. Volatile, relaxed and atomic accesses take no part.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// A lane of `x` reads or writes a word of `owner`, another block. False after reporting.
bool CheckRemoteAccess(BlockState& x, BlockState& owner, const Op& op, int lane, uint64_t word,
                       bool write);
/// A lane of `x` touches a word of its own that others reached into (kRemoteAccess). False after
/// reporting.
bool CheckAgainstRemote(BlockState& x, const Op& op, int lane, uint64_t word, bool write);
/// The last thread of the block has ended: others must not have been in its memory without word to
/// it.
void CheckLastRemoteAccess(BlockState& x);

/// Word of all that `from` did and heard so far reaches `to`, by whatever way.
void PropagateClock(const BlockState& from, BlockState& to);
/// Likewise the whole cluster: a fence, an atomic, a volatile store.
void PropagateToCluster(const BlockState& x);
/// Whether `x` may know what the other block did in `epoch`.
bool HappenedBefore(const BlockState& x, const BlockState& other, uint32_t epoch);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
