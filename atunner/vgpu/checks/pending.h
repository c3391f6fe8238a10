// What asynchronous operations still use, registers and shared memory, and who may already rely on
// their end.
//
// Order is judged by epochs: whatever synchronises starts a new one, and Warp::seen_epoch is the
// latest before which everything may be ordered before the warp. What lies in a later epoch
// certainly is not, so that is what gets reported.
#pragma once

#include <span>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// What an asynchronous read or write is issued with.
struct AsyncIssuer {
  uint16_t party = kNoAccessor;  ///< a thread, or the warp group
  uint32_t first_warp = 0;       ///< those that issue it together
  uint32_t warps = 1;
  uint32_t seen_epoch = 0;  ///< of all of them
  uint32_t proxy_epoch = 0;
  InFlight flag = kBulkRead;
};
AsyncIssuer IssuingThread(const BlockState& x, int lane);
AsyncIssuer IssuingGroup(const BlockState& x);

/// For bulk copies of one thread: AsyncWrite into the block that owns a shared address, AsyncRead
/// of this block's memory, pending where the copy belongs to a bulk group. True where nothing is
/// checked.
bool NoteBulkWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                   uint64_t barrier);
bool NoteBulkRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                  bool grouped);

/// Checks words that an asynchronous operation reads and marks them in flight; false after
/// reporting.
bool AsyncRead(BlockState& x, const Op& op, int lane, const AsyncIssuer& by, uint64_t address,
               uint64_t bytes);
/// Likewise words of `x`, the block that owns them, that a bulk copy issued by `by` of
/// `issuer_block` writes.
bool AsyncWrite(BlockState& owner, BlockState& issuer_block, const Op& op, int lane,
                const AsyncIssuer& by, uint64_t address, uint64_t bytes, uint64_t barrier);
/// Reads of `party` with fewer than `groups` commits before them are over.
void FinishReads(BlockState& x, uint16_t party, uint32_t groups);
/// The phase of the block's mbarrier at a shared address ended: who waits for it may use what its
/// copies brought.
void FinishPhase(BlockState& x, uint64_t barrier);
/// The warp waited for the last phase of an mbarrier.
void SeePhase(BlockState& x, uint64_t barrier);

/// Synchronisation that orders everything so far before the warp.
inline void SeeAll(BlockState& x) { x.warp->seen_epoch = x.shadow.epoch + 1; }

/// A wgmma of the warp holds the registers in its list until the warp waits.
void HoldRegisters(Warp& warp, const Kernel& kernel, const Op& op);
void ReleaseRegisters(Warp& warp, const Kernel& kernel, uint32_t groups);
/// Looks at an operation before it runs, where BlockState::watch asks for it.
void Watch(BlockState& x, const Op& op);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
