// Race detection in shared memory by epochs; uninitialised reads of shared and local memory.
//
// Two accesses to a word race if at least one is a write, they are by different threads, and no
// synchronisation orders them. A full vector clock per word and thread would be exact, but with
// 1024 threads too large and too slow. Block-wide synchronisation is by far the most frequent, so
// one number is enough for most words:
//
//   * RaceShadow::epoch numbers the intervals between events that order something (barriers, ends
//     of mbarrier phases, fences and others).
//   * Warp::before (memory/happens_before.h) says which accesses happen before the warp's next
//     ones: all those before an epoch, which a barrier of the block sets, and those of single warps
//     in further epochs, of which other synchronisation told (synchronisation.h).
//   * Warp::sync_epoch numbers the intervals between warp-level synchronisations (bar.warp.sync,
//     shuffles with a mask and others). Accesses of threads of one warp are ordered if they differ
//     in it.
//   * SharedShadow, 32 bytes per shared word, holds the latest write and the latest read: thread,
//     epoch, sync_epoch and source line.
//
// Example: thread t writes tile[t] and then reads tile[31 - t], without a barrier.
//
//     operation            shadow of tile[0] after it              check
//     thread 0 writes      writer 0, write_epoch 1                 no earlier access: fine
//     thread 31 reads      (not updated)                           epoch 1 is not before the warp,
//                                                                  writer 0 is not 31, same warp
//                                                                  but the same sync_epoch: race,
//                                                                  reported with both lines
//
// With __syncthreads() between them Warp::before begins with epoch 2 at the read, and the write of
// epoch 1 is ordered. With __syncwarp() it does not, but thread 0's write has an older sync_epoch:
// ordered, because both threads belong to one warp. A thread of another warp would still race.
//
// One reader per word is stored. If threads of several warps read a word in one epoch, the reader
// becomes kSeveralThreads, and the last of them stands for all. Further reads in that epoch change
// nothing; RaceShadow::only_read_in marks such words for a fast path, on which most loads of a
// matrix multiplication run.
//
// Threads of one warp that write different values to one word by the same statement are not
// reported (kContested) until the word is read: programs do so with values that nothing uses.
// Atomics and volatile or relaxed accesses do not race with each other, but with ordinary accesses
// (StrongShadow; synchronisation.cpp). Partial words are not compared, because the bytes of a word
// may belong to different threads.
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
#include "atunner/vgpu/checks/shuffled_values.h"
#include "atunner/vgpu/checks/synchronisation.h"

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

/// True if the latest write was by another lane of the same warp at the same source line.
bool SameStatement(const BlockState& x, const Op& op, const SharedShadow& s) {
  return s.writer < kProductAccessor && s.writer / kLanes == x.warp->index &&
         s.write_line == LineOf(x, op);
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

bool WriteUnordered(const BlockState& x, const SharedShadow& s, uint16_t thread) {
  const Warp& warp = *x.warp;
  if (s.writer == kBulkAccessor) return warp.seen_epoch < s.write_epoch;
  return s.write_epoch >= warp.before.all() && s.writer != thread &&
         !Before(warp, s.writer, s.write_epoch, s.write_sync);
}

bool ReadUnordered(const BlockState& x, const SharedShadow& s, uint16_t thread) {
  const Warp& warp = *x.warp;
  if (s.read_epoch < warp.before.all() || s.reader == thread) return false;
  if (s.reader >= kProductAccessor && s.reader < kBulkAccessor)
    return warp.index / kGroupWarps != static_cast<uint32_t>(s.reader - kProductAccessor) &&
           warp.seen_epoch <= s.read_epoch;
  // If there are several readers, the last stands for all.
  const uint16_t reader = s.reader == kSeveralThreads ? s.last_reader : s.reader;
  if (s.reader == kSeveralThreads && reader / kLanes == warp.index)
    return !warp.before.knows_single_warps();
  return !Before(warp, reader, s.read_epoch, s.read_sync);
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
    const uint64_t at = word * 4 + static_cast<uint32_t>(std::countr_zero(missing | 16u));
    if (unwritten && !LooksBehindList(x, op, owner, address) &&
        !IsPadding(x, op, owner, at, address, bytes) &&
        !FollowUnwritten(x, op, lane, at, static_cast<uint32_t>(at - address) / op.width))
      ReportUnwritten(x, op, lane,
                      "reads shared address " + Hex(shown) + " before anything was written there",
                      {Space::kShared, address, {}});
    if (s.in_flight & (kThreadCopy | kBulkCopy)) {
      return Report(
          x, op, Hazard::Kind::kAsyncCopyInFlight, lane,
          "reads shared address " + Hex(address) + " while an asynchronous copy to it is in flight",
          {Space::kShared, address, {}});
    }
    if (op.relaxed && op.order.polls) {
      if (&owner != &x) x.warp->before.Include(x.shadow.epoch + 1);
      if (&owner == &x && !CheckFlagRead(x, op, lane, word)) return;
      continue;
    }
    if (op.relaxed && &owner != &x) continue;
    if (s.in_flight & kContested) {
      return Report(x, op, Hazard::Kind::kRace, lane,
                    "reads shared address " + Hex(address) +
                        ", where lanes of a warp wrote different values at line " +
                        std::to_string(s.write_line),
                    Race(x, op, address, s, true));
    }
    if (&owner != &x) {
      if (!CheckRemoteAccess(x, owner, op, lane, word, Access::kRead)) return;
      continue;
    }
    if ((s.in_flight & kRemoteAccess) != 0 && !op.relaxed &&
        !CheckAgainstRemote(x, op, lane, word, Access::kRead))
      return;
    if ((s.in_flight & kStrongWrite) != 0 && !CheckAgainstStrong(x, op, lane, word, false)) return;
    if (WriteUnordered(x, s, thread)) {
      const bool bulk = s.writer == kBulkAccessor;
      return Report(x, op, bulk ? Hazard::Kind::kAsyncCopyInFlight : Hazard::Kind::kRace, lane,
                    "reads shared address " + Hex(address) + ", " + WrittenBy(s),
                    Race(x, op, address, s, true));
    }
    if (!Peeks(op)) NoteReader(x, word, thread, LineOf(x, op));
  }
}

namespace {

/// The strong write of a word. False after reporting.
bool WriteStrongly(BlockState& x, BlockState& owner, const Op& op, int lane, uint64_t word,
                   bool whole, bool same_value) {
  if (&owner != &x) {
    if (!op.relaxed && !CheckRemoteAccess(x, owner, op, lane, word, Access::kAtomic)) return false;
    // Other blocks may pass on what the owner's threads did so far.
    owner.shadow.released[FlagOf(word)].Include(++owner.shadow.epoch);
    if (op.order.polls) x.warp->before.Include(x.shadow.epoch + 1);
    return true;
  }
  const bool returns = !op.relaxed && op.order.polls;
  if (returns) AcquireFlag(x, FlagOf(word));
  if (same_value && op.relaxed)
    AgreeOnWord(x, lane, word);
  else if (whole && !CheckStrongWrite(x, op, lane, word, returns))
    return false;
  ReleaseFlag(x, 1u << lane, FlagOf(word));
  return true;
}

}  // namespace

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
    const bool strong = atomic || op.relaxed;
    const bool judged = !strong && !same_value;
    if (&owner != &x) {
      if (judged && !CheckRemoteAccess(x, owner, op, lane, word, Access::kWrite)) return;
      if (strong && !WriteStrongly(x, owner, op, lane, word, false, same_value)) return;
      continue;
    }
    if ((judged || atomic) && (s.in_flight & kRemoteAccess) != 0 &&
        !CheckAgainstRemote(x, op, lane, word, atomic ? Access::kAtomic : Access::kWrite))
      return;
    if (s.in_flight & (kProductRead | kBulkRead | kBulkCopy)) {
      return Report(x, op, Hazard::Kind::kRace, lane,
                    "writes shared address " + Hex(address) +
                        ", which an asynchronous operation still " +
                        (s.in_flight & kBulkCopy ? "writes" : "reads"));
    }
    // The bytes of a word may belong to different threads: only whole words can race.
    const bool whole = written == 0xf;
    if (strong) {
      if (!WriteStrongly(x, owner, op, lane, word, whole, same_value)) return;
      continue;
    }
    if (whole && !same_value) {
      if ((s.in_flight & kStrongWrite) != 0 && !CheckAgainstStrong(x, op, lane, word, true)) return;
      if (!WriteUnordered(x, s, thread)) {
        if (s.write_epoch < x.warp->before.all()) s.in_flight &= static_cast<uint8_t>(~kContested);
      } else if (SameStatement(x, op, s)) {
        s.in_flight |= kContested;
      } else {
        return Report(x, op, Hazard::Kind::kRace, lane,
                      "writes shared address " + Hex(address) + ", " + WrittenBy(s),
                      Race(x, op, address, s, true));
      }
      if (ReadUnordered(x, s, thread)) {
        return Report(x, op, Hazard::Kind::kRace, lane,
                      "writes shared address " + Hex(address) + ", " + Other(s, false),
                      Race(x, op, address, s, false));
      }
    }
    if (!whole) continue;
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
