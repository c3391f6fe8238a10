// Which synchronisation orders the accesses of threads: barriers, fences, and flags.
//
// A flag is a word that threads write and read by strong accesses: atomics, volatile and relaxed
// ones. By the PTX memory model a strong write releases what was before a fence that precedes it
// (or before itself, with .release), and a strong read acquires that. So a fence alone orders
// nothing, nor does a volatile access. Atomics need no fence to be ordered with each other.
//
// More is counted as order than the model grants, where programs rely on it and GPUs deliver:
//   * A strong read acquires without a fence behind it.
//   * Threads that fence and then meet at a barrier may leave the flag to one of them.
//   * Shuffles and votes order the accesses of the lanes that execute them.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// True if an access of a thread of the block happens before the next ones of the warp.
inline bool Before(const Warp& warp, uint32_t thread, uint32_t epoch, uint32_t sync) {
  return epoch < warp.before.all() || (thread / kLanes == warp.index && sync != warp.sync_epoch) ||
         warp.before.HasPart(thread, epoch, sync);
}

/// What lanes of the running warp release now. The caller starts a new epoch before they go on.
HappensBefore ReleasedBy(const BlockState& x, uint32_t lanes);
/// All warps of the block have met.
void MeetAll(BlockState& x);

/// A fence by lanes of the running warp. `of_block`: of block scope.
void NoteFence(BlockState& x, uint32_t lanes, bool of_block);
/// A strong access to shared memory of a cluster acquires what its blocks released by fences.
inline void AcquireInCluster(BlockState& x) {
  if (!x.checks.global_races || x.launch->cluster.Count() == 1) return;
  x.global.acquired = x.launch->clock->Now();
  x.global.observed = true;
}
/// The part of a fence, or of a releasing or acquiring access, that concerns a cluster.
void OrderCluster(BlockState& x);

/// Flags by address, see FlagOf.
void ReleaseFlag(BlockState& x, uint32_t lanes, uint64_t flag);
void AcquireFlag(BlockState& x, uint64_t flag);
/// True if global words are flags of the block's own threads alone: races between blocks are not
/// searched for, so that the shadow of global memory does not know who releases.
inline bool HasBlockFlags(const BlockState& x) { return x.checks.any && !x.checks.global_races; }
/// Releases the words that a strong write by `lane` covers, where HasBlockFlags().
void ReleaseFlags(BlockState& x, int lane, uint64_t address, uint64_t bytes);
/// The flag that a shared word is.
inline uint64_t FlagOf(uint64_t word) { return kSharedWindow | word * 4; }

/// A thread has read the flag at a global address: after the access, so that what was released with
/// the value is known.
void ObserveFlag(BlockState& x, uint64_t address, uint64_t bytes);
/// RaceClock time that a strong write by the running warp carries to other blocks.
uint64_t ReleasedTime(const BlockState& x);

// ---- strong accesses to words of the block's shared memory
/// Checks one that writes, by `lane` of those that execute it together. `returns`: an atomic whose
/// result is used. False after reporting.
bool CheckStrongWrite(BlockState& x, const Op& op, int lane, uint64_t word, bool returns);
/// A volatile write that changes nothing: if another thread has written the same, none is the
/// writer.
void AgreeOnWord(BlockState& x, int lane, uint64_t word);
/// Checks a strong load of a flag, which acquires. False after reporting.
bool CheckFlagRead(BlockState& x, const Op& op, int lane, uint64_t word);
/// False after reporting that an earlier strong write of a word races with an access by `lane`.
bool CheckAgainstStrong(BlockState& x, const Op& op, int lane, uint64_t word, bool write);

/// True for an ordinary load whose value only decides whether an atomic on the same place follows,
/// or which a compare-and-swap on it confirms.
inline bool Peeks(const Op& op) { return op.order.polls && !op.relaxed; }
/// True if the kernel has atomics.
bool UsesAtomics(BlockState& x);
/// Sets AccessOrder::polls: of strong loads whose value decides a branch, of atomics whose result
/// is used, and of ordinary loads that peek.
void FindFlags(Kernel& kernel);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
