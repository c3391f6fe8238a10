#include "atunner/vgpu/checks/pending.h"

#include <algorithm>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/cluster_shadow.h"
#include "atunner/vgpu/checks/synchronisation.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

bool Fenced(const BlockState& x, const AsyncIssuer& by, const SharedShadow& s) {
  const uint32_t writer = s.writer / kLanes;
  return by.proxy_epoch > s.write_epoch || x.async.proxy_epoch > s.write_epoch ||
         (writer < x.warps.size() && x.warps[writer].proxy_epoch > s.write_epoch);
}

/// True if a thread's write is ordered before all warps that issue a read, its own warp included.
bool OrderedBefore(const BlockState& x, const AsyncIssuer& by, const SharedShadow& s) {
  for (uint32_t warp = by.first_warp; warp < by.first_warp + by.warps; ++warp) {
    if (warp != s.writer / kLanes && x.warps[warp].seen_epoch <= s.write_epoch) return false;
  }
  return true;
}

/// Why an asynchronous read is not allowed yet; empty if it is.
enum class Conflict : uint8_t { kNone, kInFlight, kNotAwaited, kNoBarrier, kNoFence };
Conflict ReadConflict(const BlockState& x, const AsyncIssuer& by, const SharedShadow& s) {
  if (s.in_flight & (kThreadCopy | kBulkCopy)) return Conflict::kInFlight;
  if (s.writer == kNoAccessor || s.write_epoch == 0) return Conflict::kNone;
  if (s.writer == kBulkAccessor)
    return by.seen_epoch >= s.write_epoch ? Conflict::kNone : Conflict::kNotAwaited;
  if (by.seen_epoch <= s.write_epoch && !OrderedBefore(x, by, s)) return Conflict::kNoBarrier;
  return Fenced(x, by, s) ? Conflict::kNone : Conflict::kNoFence;
}

void ReportConflict(BlockState& x, const Op& op, int lane, uint64_t word, Conflict conflict) {
  const SharedShadow& s = x.shadow.words[word];
  const std::string line = " at line " + std::to_string(s.write_line);
  const std::string wrote = ", which thread " + std::to_string(s.writer) + " wrote" + line;
  const std::string why = conflict == Conflict::kInFlight
                              ? " while an asynchronous copy to it is in flight"
                          : conflict == Conflict::kNotAwaited
                              ? ", where a bulk copy" + line +
                                    " landed, without waiting for its mbarrier"
                          : conflict == Conflict::kNoBarrier
                              ? wrote + " with no barrier between"
                              : wrote + " with no fence.proxy.async between";
  const bool copied = conflict == Conflict::kInFlight || conflict == Conflict::kNotAwaited;
  Report(x, op, copied ? Hazard::Kind::kAsyncCopyInFlight : Hazard::Kind::kRace, lane,
         "reads shared address " + Hex(word * 4) + why);
}

/// True if the latest reads of a word may not have ended when a bulk copy overwrites it.
bool StillRead(const BlockState& x, const AsyncIssuer& by, const SharedShadow& s) {
  if (s.reader == kNoAccessor || s.read_epoch == 0) return false;
  if (by.seen_epoch > s.read_epoch) {
    // A synchronisation came after the read: if a thread read, it must have taken part.
    const uint16_t reader = s.reader == kSeveralThreads ? s.last_reader : s.reader;
    return reader < kProductAccessor && reader / kLanes - by.first_warp >= by.warps &&
           !Before(*x.warp, reader, s.read_epoch, s.read_sync);
  }
  if (s.reader >= kProductAccessor && s.reader < kBulkAccessor)
    return by.first_warp / kGroupWarps != static_cast<uint32_t>(s.reader - kProductAccessor);
  return s.reader == kSeveralThreads || s.reader / kLanes - by.first_warp >= by.warps;
}

/// True if the latest reads of a word are by its own block and do not happen before the other
/// block.
bool ReadUnorderedRemotely(const BlockState& owner, const BlockState& other,
                           const SharedShadow& s) {
  return s.reader != kNoAccessor && s.read_epoch != 0 &&
         !HappenedBefore(other.cluster, owner.cluster.rank, s.read_epoch);
}

void MarkReads(BlockState& x, const AsyncReads& reads, InFlight flag) {
  for (const WordRange& range : reads.ranges) {
    for (uint32_t w = range.first; w < range.first + range.count; ++w)
      x.shadow.words[w].in_flight = static_cast<uint8_t>(x.shadow.words[w].in_flight | flag);
  }
}

/// Clears the in-flight bits of finished reads, except of words that another pending read uses.
void EndReads(BlockState& x, const AsyncReads& reads) {
  for (const WordRange& range : reads.ranges) {
    for (uint32_t w = range.first; w < range.first + range.count; ++w) {
      SharedShadow& s = x.shadow.words[w];
      s.in_flight = static_cast<uint8_t>(s.in_flight & ~(kProductRead | kBulkRead));
      x.shadow.only_read_in[w] = 0;
      s.reader = s.last_reader = reads.reader;
      s.read_sync = x.warp->sync_epoch;
      s.read_epoch = x.shadow.epoch;
      s.read_line = reads.line;
    }
  }
}

/// Calls `f` for the registers of a pending operation: accumulators first, then those that are only
/// read.
template <class F>
void ForRegisters(const Kernel& kernel, const Op& op, F&& f) {
  if (FlowOf(kernel, op) != Flow::kAligned) return f(op.dst, kWritten);  // a move
  const uint32_t accumulators = uint32_t{op.list_size} - op.width;
  for (uint32_t i = 0; i < op.list_size; ++i)
    f(kernel.lists[op.list + i], i < accumulators ? kWritten : kRead);
}

void Hold(Warp& warp, const Kernel& kernel, const Op& op) {
  ForRegisters(kernel, op, [&](int32_t slot, Held how) {
    if (slot > 0)
      warp.held[static_cast<size_t>(slot)] = std::max(warp.held[static_cast<size_t>(slot)], how);
  });
}

void Remember(Warp& warp, uint32_t group, const Op& op) {
  const auto same = std::ranges::find(warp.products, &op, &PendingProduct::op);
  if (same != warp.products.end())
    same->group = group;
  else
    warp.products.push_back({group, &op});
}

/// A copy of a register that a wgmma still writes is pending too: compilers move accumulators
/// between registers.
void FollowMove(BlockState& x, const Op& op) {
  Warp& warp = *x.warp;
  uint32_t group = 0;
  for (const PendingProduct& product : warp.products) {
    ForRegisters(*x.kernel, *product.op, [&](int32_t slot, Held) {
      if (slot == op.src[0]) group = std::max(group, product.group);
    });
  }
  Remember(warp, group, op);
  Hold(warp, *x.kernel, op);
}

void CheckHeld(BlockState& x, const Op& op) {
  const auto held = [&](int32_t slot) {
    return slot > 0 ? x.warp->held[static_cast<size_t>(slot)] : kFree;
  };
  if (op.copies_register && held(op.src[0]) == kWritten) return FollowMove(x, op);
  bool reads = std::ranges::any_of(op.src, [&](int32_t slot) { return held(slot) == kWritten; });
  bool writes = held(op.dst) != kFree || held(op.dst2) != kFree;
  for (size_t i = 0; i < op.list_size; ++i) {
    const Held how = held(x.kernel->lists[op.list + i]);
    reads |= !op.list_written && how == kWritten;
    writes |= op.list_written && how != kFree;
  }
  if (!reads && !writes) return;
  Report(x, op, Hazard::Kind::kRace, 0,
         std::string(reads ? "reads" : "writes") + " a register of the wgmma at line " +
             std::to_string(LineOf(x, *x.warp->products.front().op)) + " before wgmma.wait_group");
}

}  // namespace

AsyncIssuer IssuingThread(const BlockState& x, int lane) {
  const Warp& warp = *x.warp;
  return {static_cast<uint16_t>(x.ThreadOf(lane)),
          warp.index,
          1,
          warp.seen_epoch,
          warp.proxy_epoch,
          kBulkRead};
}

AsyncIssuer IssuingGroup(const BlockState& x) {
  AsyncIssuer by;
  by.first_warp = x.warp->index / kGroupWarps * kGroupWarps;
  by.warps = std::min<uint32_t>(kGroupWarps, static_cast<uint32_t>(x.warps.size()) - by.first_warp);
  by.accessor = static_cast<uint16_t>(kProductAccessor + by.first_warp / kGroupWarps);
  by.flag = kProductRead;
  by.seen_epoch = x.warp->seen_epoch;
  for (const Warp& warp : std::span(x.warps).subspan(by.first_warp, by.warps)) {
    by.seen_epoch = std::min(by.seen_epoch, warp.seen_epoch);
    by.proxy_epoch = std::max(by.proxy_epoch, warp.proxy_epoch);
  }
  return by;
}

bool NoteBulkWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                   uint64_t barrier) {
  if (!x.checks.any) return true;
  BlockState* owner = SharedOwner(x, op, lane, address);
  BlockState* same = SharedOwner(x, op, lane, barrier);
  if (owner == nullptr || same == nullptr) return false;
  return AsyncWrite(*owner, x, op, lane, IssuingThread(x, lane), address, bytes, barrier);
}

bool NoteBulkRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                  bool grouped) {
  if (!x.checks.any) return true;
  BlockState* owner = SharedOwner(x, op, lane, address);
  if (owner != &x) return owner != nullptr;
  AsyncIssuer by = IssuingThread(x, lane);
  if (!AsyncRead(x, op, lane, by, address, bytes)) return false;
  AsyncReads reads{by.accessor, x.async.bulk_groups[by.accessor], LineOf(x, op), {}};
  reads.ranges.push_back(
      {static_cast<uint32_t>(address / 4), static_cast<uint32_t>((bytes + 3) / 4)});
  if (grouped)
    x.async.reads.push_back(std::move(reads));
  else
    EndReads(x, reads);
  return true;
}

bool AsyncRead(BlockState& x, const Op& op, int lane, const AsyncIssuer& by, uint64_t address,
               uint64_t bytes) {
  for (uint64_t word = address / 4; word < (address + bytes + 3) / 4; ++word) {
    SharedShadow& s = x.shadow.words[word];
    if (s.initialised != 0xf)
      ReportUnwritten(
          x, op, lane,
          "reads shared address " + Hex(word * 4) + " before anything was written there");
    if (const Conflict conflict = ReadConflict(x, by, s); conflict != Conflict::kNone) {
      ReportConflict(x, op, lane, word, conflict);
      return false;
    }
    s.in_flight = static_cast<uint8_t>(s.in_flight | by.flag);
  }
  return true;
}

namespace {

/// Why a bulk copy must not overwrite a word yet; empty if it may.
std::string OverwriteConflict(const BlockState& owner, const BlockState& issuer_block,
                              const AsyncIssuer& by, const SharedShadow& s, bool reduces) {
  if (s.in_flight & (kProductRead | kBulkRead))
    return ", which an asynchronous operation still reads";
  // reductions of the same word do not race
  if ((s.in_flight & kBulkCopy) != 0 && !reduces) return ", where nobody waited for the last copy";
  if (&owner != &issuer_block)
    return ReadUnorderedRemotely(owner, issuer_block, s)
               ? " of another block, which read it and gave no word of that"
               : "";
  if (!StillRead(issuer_block, by, s)) return "";
  const uint16_t reader = s.reader == kSeveralThreads ? s.last_reader : s.reader;
  return ", which " +
         (reader < kProductAccessor ? "thread " + std::to_string(reader) : std::string("others")) +
         " read at line " + std::to_string(s.read_line) + " with no synchronisation between";
}

}  // namespace

bool AsyncWrite(BlockState& owner, BlockState& issuer_block, const Op& op, int lane,
                const AsyncIssuer& by, uint64_t address, uint64_t bytes, uint64_t barrier) {
  const auto first = static_cast<uint32_t>(address / 4);
  const auto words = static_cast<uint32_t>((address + bytes + 3) / 4) - first;
  bool clean = true;
  for (uint32_t word = first; word < first + words; ++word) {
    SharedShadow& s = owner.shadow.words[word];
    const std::string conflict = clean ? OverwriteConflict(owner, issuer_block, by, s, op.dst2 < 0)
                                       : "";
    if (!conflict.empty()) {
      clean = false;
      Report(issuer_block, op, Hazard::Kind::kRace, lane,
             "overwrites shared address " + Hex(uint64_t{word} * 4) + conflict);
      if (issuer_block.stop) return false;
    }
    s.initialised = 0xf;
    owner.shadow.only_read_in[word] = 0;
    MarkWordDefined(owner.shadow, word);
    s.in_flight = static_cast<uint8_t>(s.in_flight | kBulkCopy);
  }
  owner.async.landings.push_back({barrier, false, first, words, LineOf(issuer_block, op)});
  return true;
}

void FinishReads(BlockState& x, uint16_t accessor, uint32_t groups) {
  bool any = false;
  std::erase_if(x.async.reads, [&](const AsyncReads& reads) {
    if (reads.reader != accessor || reads.group >= groups) return false;
    EndReads(x, reads);
    return any = true;
  });
  if (!any) return;
  for (const AsyncReads& reads : x.async.reads)
    MarkReads(x, reads, reads.reader >= kProductAccessor ? kProductRead : kBulkRead);
}

void ReleasePhase(BlockState& x, const Op& op, int lane, uint64_t barrier) {
  BlockState* owner = SharedOwner(x, op, lane, barrier);
  if (owner == nullptr) return;
  HappensBefore& released = owner->async.arrivals[barrier];
  if (owner == &x)
    released.Include(ReleasedBy(x, 1u << lane));
  else  // another block may pass on what the owner's threads did so far
    released.Include(owner->shadow.epoch + 1);
}

void FinishPhase(BlockState& x, uint64_t barrier) {
  x.async.phase_epochs[barrier] = x.shadow.epoch;
  if (auto arrived = x.async.arrivals.extract(barrier); !arrived.empty())
    x.async.phases[barrier].Include(arrived.mapped());
  for (BulkLanding& landing : x.async.landings) landing.complete |= landing.barrier == barrier;
}

void SeePhase(BlockState& x, uint64_t barrier) {
  const auto at = x.async.phase_epochs.find(barrier);
  if (at == x.async.phase_epochs.end()) return;
  const auto lands = [&](const BulkLanding& landing) {
    return landing.complete && landing.barrier == barrier;
  };
  if (std::ranges::any_of(x.async.landings, lands)) {
    ++x.shadow.epoch;
    at->second = x.shadow.epoch;
  }
  std::erase_if(x.async.landings, [&](const BulkLanding& landing) {
    if (!lands(landing)) return false;
    for (uint32_t w = landing.word; w < landing.word + landing.words; ++w) {
      SharedShadow& s = x.shadow.words[w];
      s.in_flight = static_cast<uint8_t>(s.in_flight & ~kBulkCopy);
      s.writer = kBulkAccessor;
      s.write_epoch = x.shadow.epoch;
      s.write_line = landing.line;
    }
    return true;
  });
  x.warp->seen_epoch = std::max(x.warp->seen_epoch, at->second);
  x.warp->before.Include(x.async.phases[barrier]);
}

void HoldRegisters(Warp& warp, const Kernel& kernel, const Op& op) {
  warp.held.resize(kernel.register_slots + kPaddingSlots, kFree);
  Remember(warp, warp.product_groups, op);
  Hold(warp, kernel, op);
}

void ReleaseRegisters(Warp& warp, const Kernel& kernel, uint32_t groups) {
  std::erase_if(warp.products,
                [&](const PendingProduct& product) { return product.group < groups; });
  std::ranges::fill(warp.held, kFree);
  for (const PendingProduct& product : warp.products) Hold(warp, kernel, *product.op);
}

void Watch(BlockState& x, const Op& op) {
  if (!x.warp->products.empty()) CheckHeld(x, op);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
