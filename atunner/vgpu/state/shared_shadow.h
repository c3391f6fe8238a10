// The shadow of a block's shared memory, word by word, with which races
// and uninitialised reads are found. checks/block_shadow.cpp says how.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/vgpu/memory/happens_before.h"
#include "atunner/vgpu/state/decoded.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Bits of SharedShadow::in_flight: asynchronous accesses to a shared word that have not been
/// waited for.
enum InFlight : uint8_t {
  kThreadCopy = 1,     ///< cp.async writes it
  kBulkCopy = 2,       ///< cp.async.bulk writes it
  kProductRead = 4,    ///< wgmma reads it
  kBulkRead = 8,       ///< cp.async.bulk reads it
  kRemoteAccess = 16,  ///< another block of the cluster touched it, see ClusterWord
  /// Lanes of a warp wrote different values by one statement. That is reported if the word is read.
  kContested = 32,
  kStrongWrite = 64  ///< an atomic or a strong store wrote it, see StrongShadow
};
/// Values of SharedShadow::writer and reader that are not threads of the block.
/// kProductAccessor + i: a wgmma of warp group i.
enum Accessor : uint16_t {
  kProductAccessor = 0xfff0,
  kBulkAccessor = 0xfffd,
  kSeveralThreads = 0xfffe,
  kNoAccessor = 0xffff
};

/// Shadow of one shared 32-bit word: its latest write and read.
struct SharedShadow {
  uint32_t write_epoch = 0;  ///< RaceShadow::epoch at the time of the write
  uint32_t read_epoch = 0;
  uint32_t write_sync = 0;  ///< Warp::sync_epoch of the writer at that time
  uint32_t read_sync = 0;
  uint16_t writer = kNoAccessor;       ///< a thread of the block or an Accessor
  uint16_t reader = kNoAccessor;       ///< likewise; kSeveralThreads: threads of several warps
  uint8_t initialised = 0;             ///< one bit per byte
  uint8_t in_flight = 0;               ///< bits of InFlight
  uint16_t last_reader = kNoAccessor;  ///< the latest thread, also if there are several
  uint32_t write_line = 0;
  uint32_t read_line = 0;
};

/// The latest strong write to a shared 32-bit word: by an atomic, or by a volatile, relaxed or
/// releasing store.
struct StrongShadow {
  uint32_t epoch = 0;
  uint32_t sync = 0;
  uint32_t line = 0;
  uint16_t thread = kNoAccessor;
  uint16_t observer = kNoAccessor;  ///< the last warp that read it by a strong access
  bool several = false;             ///< threads that do not know of each other
};

/// The latest volatile accesses to a shared 32-bit word.
struct WarpExchange {
  struct Access {
    uint32_t epoch = 0;
    uint32_t sync = 0;   ///< Warp::sync_epoch
    uint32_t lanes = 0;  ///< mask of the lanes that executed it
    uint32_t line = 0;
    uint16_t thread = kNoAccessor;
  };
  Access read;
  Access write;
};

/// The latest accesses to a shared 32-bit word by other blocks of the cluster.
struct ClusterWord {
  struct Access {
    uint32_t epoch = 0;  ///< of the block that owns the word; 0 = there was no access
    uint32_t rank = 0;   ///< rank in the cluster of the block that accessed it
    uint32_t thread = 0;
    const Op* op = nullptr;
  };
  Access read;
  Access write;
  Access atomic;
};

/// The shadow of a block's shared memory.
struct RaceShadow {
  /// Number of the current epoch. Every block-wide synchronisation starts a new one, so that
  /// accesses of different epochs are ordered.
  uint32_t epoch = 1;
  /// Events of epochs before this one happen before what any warp does next.
  uint32_t common_epoch = 1;
  std::vector<SharedShadow> words;  ///< per shared word
  /// Per shared word: the epoch in which threads of several warps have read it and nothing else
  /// happened to it. One more read in that epoch changes nothing, which is a fast path.
  /// 0 = look at `words`.
  std::vector<uint32_t> only_read_in;
  /// Per byte of shared memory: 1 = an undefined register was stored there. Empty unless
  /// Kernel::carries_undefined.
  std::vector<uint8_t> undefined_bytes;
  std::vector<WarpExchange> exchanges;  ///< per shared word; empty before the first volatile access
  std::vector<StrongShadow> strong;     ///< per shared word; empty before the first strong write
  /// By the address of a flag, shared or global: what its writers released to the block's threads
  /// that read it.
  std::unordered_map<uint64_t, HappensBefore> released;
  /// The first read of shared memory to which nothing was written. A later write in the same epoch
  /// makes it a race; otherwise it is reported when the block ends.
  std::optional<Hazard> unwritten_read;
};

/// Shared words that a cp.async writes.
struct PendingCopy {
  uint32_t word = 0;
  uint32_t words = 0;
  uint32_t group = 0;  ///< how many cp.async.commit_group were executed before it
};

/// Shared words that a bulk copy writes, in flight until a thread has waited for the phase of its
/// mbarrier.
struct BulkLanding {
  uint64_t barrier = 0;   ///< shared address of the mbarrier, in the same block
  bool complete = false;  ///< the phase has ended
  uint32_t word = 0;
  uint32_t words = 0;
  uint32_t line = 0;
};
struct WordRange {
  uint32_t first = 0;
  uint32_t count = 0;
};
/// Shared words that the wgmma of a warp group, or the bulk copies of a thread, read until a wait.
struct AsyncReads {
  uint16_t reader = kNoAccessor;  ///< a thread or an Accessor
  uint32_t group = 0;             ///< commits before
  uint32_t line = 0;
  std::vector<WordRange> ranges;
};

/// Asynchronous operations of a block that have not been waited for.
struct AsyncState {
  std::vector<std::vector<PendingCopy>> copies;  ///< per thread: cp.async
  std::vector<uint32_t> copy_groups;             ///< per thread: cp.async.commit_group so far
  std::vector<uint32_t> bulk_groups;             ///< per thread: cp.async.bulk.commit_group so far
  std::vector<AsyncReads> reads;
  std::vector<BulkLanding> landings;
  /// By the shared address of an mbarrier: a thread that waited for its last phase is ordered after
  /// the events of this epoch.
  std::unordered_map<uint64_t, uint32_t> phase_epochs;
  /// Likewise: what the threads that arrived released, in the current phase and in those that ended
  std::unordered_map<uint64_t, HappensBefore> arrivals, phases;
  uint32_t proxy_epoch = 0;  ///< Warp::seen_epoch of the latest fence.proxy.async
};

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
