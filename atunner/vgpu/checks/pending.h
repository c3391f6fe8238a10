// Registers and shared memory that asynchronous operations (cp.async, bulk copies, wgmma) still
// use, and which warps are ordered after their end.
//
// Order is tracked by epochs: every synchronisation starts a new one. Events of epochs before
// Warp::seen_epoch may happen before the warp's next instruction. Events of later epochs certainly
// do not, and only accesses that conflict with those are reported.
#pragma once

#include <span>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// The threads that issue an asynchronous read or write.
struct AsyncIssuer {
  uint16_t accessor = kNoAccessor;  ///< a thread, or a warp group
  uint32_t first_warp = 0;          ///< first of the `warps` warps that issue it together
  uint32_t warps = 1;
  uint32_t seen_epoch = 0;  ///< the smallest Warp::seen_epoch of these warps
  uint32_t proxy_epoch = 0;
  InFlight flag = kBulkRead;
};
AsyncIssuer IssuingThread(const BlockState& x, int lane);
AsyncIssuer IssuingGroup(const BlockState& x);

/// For bulk copies of one thread: AsyncWrite into the block that owns a shared address, and
/// AsyncRead of this block's memory, which is pending if the copy belongs to a bulk group. True
/// also when no checks are enabled.
bool NoteBulkWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                   uint64_t barrier);
bool NoteBulkRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                  bool grouped);

/// Checks words that an asynchronous operation reads and marks them in flight; false after
/// reporting.
bool AsyncRead(BlockState& x, const Op& op, int lane, const AsyncIssuer& by, uint64_t address,
               uint64_t bytes);
/// The same for words of block `owner` that a bulk copy writes, which `by` of `issuer_block`
/// issues.
bool AsyncWrite(BlockState& owner, BlockState& issuer_block, const Op& op, int lane,
                const AsyncIssuer& by, uint64_t address, uint64_t bytes, uint64_t barrier);
/// Ends the reads of `accessor` with fewer than `groups` commits before them.
void FinishReads(BlockState& x, uint16_t accessor, uint32_t groups);
/// A lane arrives at the mbarrier at a shared address: it releases what was before to those who
/// wait for the phase.
void ReleasePhase(BlockState& x, const Op& op, int lane, uint64_t barrier);
/// Ends the phase of an mbarrier: threads that wait for it may use the data of its copies.
void FinishPhase(BlockState& x, uint64_t barrier);
/// The warp has waited for the last phase of an mbarrier.
void SeePhase(BlockState& x, uint64_t barrier);

/// Orders all events of the block so far before the warp.
inline void SeeAll(BlockState& x) { x.warp->seen_epoch = x.shadow.epoch + 1; }

/// Marks the registers in the list of a wgmma as in use until the warp waits.
void HoldRegisters(Warp& warp, const Kernel& kernel, const Op& op);
void ReleaseRegisters(Warp& warp, const Kernel& kernel, uint32_t groups);
/// Checks an operation before it runs against registers in use, if BlockState::watch is set.
void Watch(BlockState& x, const Op& op);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
