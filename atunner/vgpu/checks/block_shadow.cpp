// Race detection in shared memory by epochs; uninitialised reads of shared and local memory.
//
// Two accesses to a word race if at least one is a write, they are by different threads, and no
// synchronisation orders them. A full vector clock per word and thread would be exact, but with
// 1024 threads too large and too slow. Block-wide synchronisation is by far the most frequent, so
// one number is enough for most words:
//
//   * RaceShadow::epoch numbers the intervals between block-wide synchronisations (bar.sync,
//     completed mbarrier phases and others, see OrderAll). Accesses of different epochs are
//     ordered.
//   * Warp::sync_epoch numbers the intervals between warp-level synchronisations (bar.warp.sync,
//     shuffles with a mask and others). Accesses of threads of one warp in one epoch are ordered if
//     they differ in it.
//   * SharedShadow, 32 bytes per shared word, holds the latest write and the latest read: thread,
//     epoch, sync_epoch and source line.
//
// Example: thread t writes tile[t] and then reads tile[31 - t], without a barrier.
//
//     operation            shadow of tile[0] after it              check
//     thread 0 writes      writer 0, write_epoch 1                 no earlier access: fine
//     thread 31 reads      (not updated)                           write_epoch 1 == epoch 1, writer
//     0
//                                                                  is not 31, same warp but the
//                                                                  same sync_epoch: race, reported
//                                                                  with the lines of both accesses
//
// With __syncthreads() between them the epoch is 2 at the read, and the write of epoch 1 is
// ordered. With __syncwarp() the epoch stays 1, but thread 0's write has an older sync_epoch:
// ordered, because both threads belong to one warp. A thread of another warp would still race.
//
// One reader per word is stored. If threads of several warps read a word in one epoch, the reader
// becomes kSeveralThreads, which is unordered with every later write of the epoch. Further reads in
// that epoch change nothing; RaceShadow::only_read_in marks such words for a fast path, on which
// most loads of a matrix multiplication run.
//
// Threads of one warp that write different values to one word by the same statement are not
// reported (kContested) until the word is read: programs do so with values that nothing uses.
// Atomics and volatile or relaxed accesses do not race. Partial words are not compared, because the
// bytes of a word may belong to different threads.
//
// Asynchronous accesses add bits to SharedShadow::in_flight (checks/pending.cpp); accesses of other
// blocks of the cluster are in cluster_shadow.cpp; volatile exchanges within a warp in
// warp_exchange.cpp.
//
// Initialisation is one bit per byte of a shared word. Reads of unwritten bytes are reported,
// except where a struct's padding is copied, which UsedBytes and OnlyCopied tell from the code.
#include <algorithm>

#include "atunner/vgpu/analysis/used_bytes.h"
#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/cluster_shadow.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

std::string Other(const SharedShadow& word, bool writer) {
  const uint16_t thread = writer ? word.writer : word.reader;
  return (writer ? "written by thread " : "read by ") +
         (thread >= kProductAccessor ? std::string("several threads")
                                     : (writer ? "" : "thread ") + std::to_string(thread)) +
         " at line " + std::to_string(writer ? word.write_line : word.read_line) +
         " with no barrier between";
}

Fault Race(const BlockState& x, const Op& op, uint64_t address, const SharedShadow& word,
           bool writer) {
  Hazard::Site other = SiteOf(x, op, x.block, writer ? word.writer : word.reader);
  other.line = writer ? word.write_line : word.read_line;
  return {Space::kShared, address, other};
}

/// A further bit of SharedShadow::in_flight: lanes of a warp wrote different values to the word by
/// one statement. That is reported if the word is read.
constexpr uint8_t kContested = 32;

/// True if the latest write was by another lane of the same warp at the same source line.
bool SameStatement(const BlockState& x, const Op& op, const SharedShadow& s) {
  return s.writer < kProductAccessor && s.writer / kLanes == x.warp->index &&
         s.write_line == LineOf(x, op);
}

/// True if a warp-level synchronisation orders the access of thread `other` before the warp.
bool SameWarpOrdered(const Warp& warp, uint16_t other, uint32_t other_sync) {
  return other < kProductAccessor && other / kLanes == warp.index && other_sync != warp.sync_epoch;
}

/// True if the latest read of a word is not ordered before a write by a thread of the warp, in
/// `epoch` of the block.
bool ReadUnordered(const Warp& warp, uint32_t epoch, const SharedShadow& s, uint16_t thread) {
  if (s.read_epoch != epoch || s.reader == thread) return false;
  if (s.reader >= kProductAccessor && s.reader < kBulkAccessor)
    return warp.index / kGroupWarps != static_cast<uint32_t>(s.reader - kProductAccessor);
  return !SameWarpOrdered(warp, s.reader, s.read_sync);
}

std::string WrittenBy(const SharedShadow& s) {
  return s.writer == kBulkAccessor ? "where the bulk copy at line " + std::to_string(s.write_line) +
                                         " landed, without waiting for its mbarrier"
                                   : Other(s, true);
}

uint8_t BytesOfWord(uint64_t word, uint64_t address, uint64_t bytes) {
  const uint64_t low = std::max(address, word * 4) - word * 4;
  const uint64_t high = std::min(address + bytes, word * 4 + 4) - word * 4;
  return static_cast<uint8_t>(((1u << (high - low)) - 1u) << low);
}

/// The block whose shared memory an address means. The address is known to be valid.
BlockState& OwnerOf(BlockState& x, uint64_t& address) {
  const uint64_t rank = address >> kRankShift;
  address &= (uint64_t{1} << kRankShift) - 1;
  return rank == 0 || rank == x.cluster.rank + 1 || rank > x.peers->members.size()
             ? x
             : *x.peers->members[rank - 1];
}

/// The result of a static analysis of an operation, cached in HazardLog::analyses by its number.
template <class F>
bool Cached(BlockState& x, const Op& op, uint32_t analysis, F&& compute) {
  const auto [known, is_new] = x.log.analyses.try_emplace({&op, analysis}, false);
  if (is_new) known->second = compute();
  return known->second;
}

/// True if the unwritten bytes at `at` of a lane's load of `bytes` bytes seem to be a struct's
/// padding: they are only copied within the block, or copied together with written bytes.
bool IsPadding(BlockState& x, const Op& op, const BlockState& owner, uint64_t at, uint64_t address,
               uint64_t bytes) {
  if (op.width == 0 || (op.width < 8 && op.list_size < 2)) return false;
  const auto element = static_cast<uint32_t>((at - address) / op.width);
  const bool within = Cached(x, op, 2 * element + 1, [&] {
    return OnlyCopied(*x.kernel, op, element) == Copied::kWithinBlock;
  });
  const bool copied = within || Cached(x, op, 2 * element + 2, [&] {
                        return OnlyCopied(*x.kernel, op, element) == Copied::kAnywhere;
                      });
  if (within || !copied) return within;
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    if ((owner.shadow.words[word].initialised & BytesOfWord(word, address, bytes)) != 0)
      return true;
  }
  return false;
}

/// True for a load one element behind written ones, whose value is only copied. Merges load the
/// element behind a list before they find that the list has ended, and unoptimised code stores it
/// on the stack.
bool LooksBehindList(BlockState& x, const Op& op, const BlockState& owner, uint64_t address) {
  if (op.space != Space::kGeneric || op.list_size != 1 || address < 4) return false;
  if (owner.shadow.words[address / 4 - 1].initialised == 0 ||
      owner.shadow.words[address / 4].initialised != 0)
    return false;
  return Cached(x, op, sizeof(Op) - 3, [&] { return OnlyCopied(*x.kernel, op, 0) != Copied::kNo; });
}

}  // namespace

bool CopiesPieces(BlockState& x, const Op& op) {
  if (op.width >= 4 || op.list_size < 2) return false;
  return Cached(x, op, sizeof(Op) - 1, [&] {
    for (uint32_t i = 0; i < op.list_size; ++i) {
      if (OnlyCopied(*x.kernel, op, i) == Copied::kNo) return false;
    }
    return true;
  });
}

static bool CopiesStack(BlockState& x, const Op& op) {
  return op.list_size == 1 &&
         Cached(x, op, sizeof(Op) - 2, [&] { return MayReadUnwritten(*x.kernel, op); });
}

bool WriteUnordered(const Warp& warp, uint32_t epoch, const SharedShadow& s, uint16_t thread) {
  if (s.writer == kBulkAccessor) return warp.seen_epoch < s.write_epoch;
  return s.write_epoch == epoch && s.writer != thread &&
         !SameWarpOrdered(warp, s.writer, s.write_sync);
}

bool Initialised(BlockState& x, uint64_t address) {
  BlockState& owner = OwnerOf(x, address);
  return owner.shadow.words[address / 4].initialised != 0;
}

void ShadowRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes) {
  const uint64_t shown = address;
  BlockState& owner = OwnerOf(x, address);
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  // a struct is copied in pieces, and may have padding
  const bool pieces = op.width < 4 && op.list_size > 1;
  const uint64_t used = bytes > 4 && bytes <= 32 ? UsedBytes(*x.kernel, op) : kAllBytes;
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    if (used != kAllBytes && word * 4 >= address && (used >> (word * 4 - address) & 0xf) == 0)
      continue;
    SharedShadow& s = owner.shadow.words[word];
    const uint8_t need = BytesOfWord(word, address, bytes);
    const auto missing = static_cast<uint32_t>(need & ~s.initialised);
    const bool unwritten = pieces ? missing == need : missing != 0;
    if (unwritten && !LooksBehindList(x, op, owner, address) &&
        !IsPadding(x, op, owner, word * 4 + static_cast<uint32_t>(std::countr_zero(missing)),
                   address, bytes))
      ReportUnwritten(x, op, lane,
                      "reads shared address " + Hex(shown) + " before anything was written there",
                      {Space::kShared, address, {}});
    if (s.in_flight & (kThreadCopy | kBulkCopy)) {
      return Report(
          x, op, Hazard::Kind::kAsyncCopyInFlight, lane,
          "reads shared address " + Hex(address) + " while an asynchronous copy to it is in flight",
          {Space::kShared, address, {}});
    }
    if (op.relaxed) continue;
    if (s.in_flight & kContested) {
      return Report(x, op, Hazard::Kind::kRace, lane,
                    "reads shared address " + Hex(address) +
                        ", where lanes of a warp wrote different values at line " +
                        std::to_string(s.write_line),
                    Race(x, op, address, s, true));
    }
    if (&owner != &x) {
      if (!CheckRemoteAccess(x, owner, op, lane, word, false)) return;
      continue;
    }
    if ((s.in_flight & kRemoteAccess) != 0 && !CheckAgainstRemote(x, op, lane, word, false)) return;
    if (WriteUnordered(*x.warp, x.shadow.epoch, s, thread)) {
      const bool bulk = s.writer == kBulkAccessor;
      return Report(x, op, bulk ? Hazard::Kind::kAsyncCopyInFlight : Hazard::Kind::kRace, lane,
                    "reads shared address " + Hex(address) + ", " + WrittenBy(s),
                    Race(x, op, address, s, true));
    }
    NoteReader(x, word, thread, LineOf(x, op));
  }
}

void ShadowWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                 bool same_value, bool atomic) {
  BlockState& owner = OwnerOf(x, address);
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    SharedShadow& s = owner.shadow.words[word];
    const uint8_t written = BytesOfWord(word, address, bytes);
    s.initialised |= written;
    owner.shadow.only_read_in[word] = 0;
    MarkWordDefined(owner.shadow, word);
    const bool judged = !atomic && !op.relaxed && !same_value;
    if (&owner != &x) {
      if (judged && !CheckRemoteAccess(x, owner, op, lane, word, true)) return;
      continue;
    }
    if (judged && (s.in_flight & kRemoteAccess) != 0 &&
        !CheckAgainstRemote(x, op, lane, word, true))
      return;
    if (s.in_flight & (kProductRead | kBulkRead | kBulkCopy)) {
      return Report(x, op, Hazard::Kind::kRace, lane,
                    "writes shared address " + Hex(address) +
                        ", which an asynchronous operation still " +
                        (s.in_flight & kBulkCopy ? "writes" : "reads"));
    }
    // The bytes of a word may belong to different threads: only whole words can race.
    const bool whole = written == 0xf;
    if (!atomic && !op.relaxed && whole && !same_value) {
      if (!WriteUnordered(*x.warp, x.shadow.epoch, s, thread)) {
        if (s.write_epoch != x.shadow.epoch) s.in_flight &= static_cast<uint8_t>(~kContested);
      } else if (SameStatement(x, op, s)) {
        s.in_flight |= kContested;
      } else {
        return Report(x, op, Hazard::Kind::kRace, lane,
                      "writes shared address " + Hex(address) + ", " + WrittenBy(s),
                      Race(x, op, address, s, true));
      }
      if (ReadUnordered(*x.warp, x.shadow.epoch, s, thread)) {
        return Report(x, op, Hazard::Kind::kRace, lane,
                      "writes shared address " + Hex(address) + ", " + Other(s, false),
                      Race(x, op, address, s, false));
      }
    }
    if (atomic || op.relaxed || !whole) continue;
    s.write_epoch = x.shadow.epoch;
    s.writer = thread;
    s.write_sync = x.warp->sync_epoch;
    s.write_line = LineOf(x, op);
  }
}

// ---- local memory
void CheckLocalRead(BlockState& x, const Op& op, int lane, const std::byte* at, uint32_t bytes) {
  const uint8_t* defined = x.local.defined.data() + (at - x.local.bytes.data());
  if (std::any_of(defined, defined + bytes, [](uint8_t d) { return d != 0; })) return;
  if (ReportedBefore(x, op, Hazard::Kind::kUninitialisedLocal) || CopiesStack(x, op)) return;
  if (at > x.local.bytes.data() && defined[-1] != 0 && CopiesPieces(x, op)) return;
  const uint64_t address = static_cast<uint64_t>(at - x.local.bytes.data()) % x.kernel->local_bytes;
  Report(x, op, Hazard::Kind::kUninitialisedLocal, lane,
         "reads local address " + Hex(address) + " before anything was written there",
         {Space::kLocal, address, {}});
}

void MarkLocal(LocalMemory& local, const std::byte* at, uint64_t bytes, bool defined) {
  if (!local.defined.empty() && bytes != 0)
    std::memset(local.defined.data() + (at - local.bytes.data()), defined, bytes);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
