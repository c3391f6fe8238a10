// Races in shared memory between the blocks of a cluster (distributed shared memory), by epochs and
// vector clocks.
//
// The shadow of a word (SharedShadow) holds the latest accesses of the block that owns it. The
// latest read and write by any other block of the cluster is stored beside it, in a ClusterWord:
//
//     owner (rank 0)                         rank 1
//     smem[5] = x;        write, epoch 7
//     barrier.cluster     epoch 8            barrier.cluster
//                                            y = mapa(&smem[5], 0)[0]   remote read, epoch 8:
//                                            ordered
//     smem[5] = z;        epoch 8: race with the remote read, because no barrier is between
//
// An access by another block is compared with the owner's accesses since
// ClusterState::synchronised_epoch, and the owner's accesses with the remote ones since then. The
// epoch is advanced by every synchronisation of the whole cluster: its barrier, a phase of any
// mbarrier, a fence of the word's owner.
//
// Bulk copies need a finer order, because their completion is published by a single mbarrier: a
// block may know of a copy's end while the rest of the cluster does not. Each block therefore has a
// vector clock, ClusterState::happens_before: element r is the latest epoch of rank r whose
// accesses happen before this block's current ones.
//
//     release (arrive on a remote mbarrier, fence, atomic) from block a to block b:
//         clock(b) = max(clock(b), clock(a)) element by element;  clock(b)[a] = epoch of a
//     an access of block a in epoch e happens before block b's current ones if clock(b)[a] >= e
//
// Volatile and relaxed accesses take no part: programs synchronise by them. Atomics race with
// ordinary accesses, but not with each other.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

enum class Access : uint8_t { kRead, kWrite, kAtomic };

/// Checks an access of a lane of `x` to a word of another block, `owner`. False after reporting.
bool CheckRemoteAccess(BlockState& x, BlockState& owner, const Op& op, int lane, uint64_t word,
                       Access access);
/// Checks an access of a lane of `x` to a word of its own block that other blocks accessed
/// (kRemoteAccess). False after reporting.
bool CheckAgainstRemote(BlockState& x, const Op& op, int lane, uint64_t word, Access access);
/// The last thread of the block has ended. Reports an access of another block to its memory for
/// whose end it did not wait.
void CheckLastRemoteAccess(BlockState& x);

/// Release/acquire edge from one block to another: joins the vector clock of `from` into that of
/// `to`.
void PropagateClock(const BlockState& from, BlockState& to);
/// A release/acquire edge to all blocks of the cluster: by a fence, an atomic or a volatile store.
void PropagateToCluster(const BlockState& x);
/// True if the accesses of the block of this rank in `epoch` happen before the current ones of the
/// block with this state.
bool HappenedBefore(const ClusterState& cluster, uint32_t rank, uint32_t epoch);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
