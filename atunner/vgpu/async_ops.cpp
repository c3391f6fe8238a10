// Asynchronous copies: cp.async, and cp.async.bulk without tensor maps.
#include <algorithm>

#include "atunner/vgpu/access.h"
#include "atunner/vgpu/mbarrier.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// cp.async: the bytes arrive at once, and count as in flight until the thread has waited for their group.
void AsyncCopy(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t bytes = op.width;
  uint64_t sources[kLanes] = {};
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t to_address = AddressOf(x, op, l);
    if (Resolve(Space::kGeneric, to_address) == Space::kShared) to_address &= ~kWindowMask;
    const uint64_t from_address =
        Lane<uint64_t>::Get(x.Source(op.src[1]), l) + static_cast<uint64_t>(static_cast<int64_t>(op.dst2));
    const uint32_t take = op.src[2] == INT32_MIN ? bytes : std::min(bytes, x.Source(op.src[2])[l]);
    sources[l] = from_address;
    if (!CheckAligned(x, op, l, to_address, bytes) || !CheckAligned(x, op, l, from_address, bytes)) return;
    std::byte* to = WindowPointer(x, op, l, Space::kShared, to_address, bytes, "asynchronous copy");
    if (to == nullptr) return;
    const std::byte* from = take ? GlobalPointer(x, op, l, from_address, take, "asynchronous copy") : nullptr;
    if (take && from == nullptr) return;
    if (take) NoteGlobalRead(x, op, l, from_address, take);
    if (x.check) {
      ShadowWrite(x, op, l, to_address, bytes, false, false);
      const uint32_t thread = x.ThreadOf(l);
      for (uint64_t w = to_address / 4; w < (to_address + bytes) / 4; ++w) x.shadow[w].in_flight = 1;
      x.pending[thread].push_back({static_cast<uint32_t>(to_address / 4), bytes / 4, x.copy_group[thread]});
    }
    std::memset(to, 0, bytes);
    if (take) std::memcpy(to, from, take);
  }
  x.counts.async_copy_bytes += static_cast<uint64_t>(std::popcount(mask)) * bytes;
  if (x.count) CountGlobal(x, sources, mask, bytes, false);
}

void AsyncCommit(Exec& x, const Op&, uint32_t mask) {
  if (!x.check) return;
  for (uint32_t m = mask; m != 0; m &= m - 1) ++x.copy_group[x.ThreadOf(std::countr_zero(m))];
}

/// wait_group N: all but the newest N groups have landed. `imm` = N, or ~0 for wait_all.
void AsyncWait(Exec& x, const Op& op, uint32_t mask) {
  x.loads_pending = true;
  if (!x.check) return;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint32_t thread = x.ThreadOf(l);
    std::vector<PendingCopy>& pending = x.pending[thread];
    std::erase_if(pending, [&](const PendingCopy& copy) {
      const bool landed = op.imm == ~uint64_t{0} || copy.group + op.imm < x.copy_group[thread];
      if (!landed) return false;
      for (uint32_t w = copy.word; w < copy.word + copy.words; ++w) {
        x.shadow[w].in_flight = 0;
        x.shadow[w].write_epoch = x.epoch;  // visible to others only after a barrier
        x.shadow[w].writer = static_cast<uint16_t>(thread);
        x.shadow[w].write_sync = x.warp->sync_epoch;
      }
      return true;
    });
  }
}

}  // namespace

namespace {

// ---- cp.async.mbarrier.arrive ---------------------------------------------------------------------------------------
/// Copies land at once, so the arrival that follows them can be made now. Without .noinc the phase expects one more.
template <bool kNoIncrement>
void AsyncArrive(Exec& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    if (x.stop) return;
    const uint32_t* a = x.Source(op.src[0]);
    const uint64_t address = op.variant ? a[l] : Lane<uint64_t>::Get(a, l);
    if (x.check) {
      for (const PendingCopy& copy : x.pending[x.ThreadOf(l)]) {
        for (uint32_t w = copy.word; w < copy.word + copy.words; ++w) x.shadow[w].in_flight = 0;
      }
      x.pending[x.ThreadOf(l)].clear();
    }
    if (kNoIncrement)
      ArriveAt(x, op, l, address, 1, 0, false);
    else
      (void)MbarrierAt(x, op, l, address);  // one arrival more and one made
  });
}

// ---- cp.async.bulk --------------------------------------------------------------------------------------------------
uint64_t BulkAddress(const Exec& x, const Op& op, int operand, int lane) {
  const uint32_t* slot = x.Source(op.src[static_cast<size_t>(operand)]);
  const uint64_t base = (op.variant >> operand) & 1 ? slot[lane] : Lane<uint64_t>::Get(slot, lane);
  return base + (operand == 0 ? op.imm : op.target);
}

bool BulkAligned(Exec& x, const Op& op, int lane, uint64_t value, const char* what) {
  if (value % 16 == 0) return true;
  Report(x, op, Hazard::Kind::kMisaligned, lane, std::string("bulk copy: ") + what + " is not a multiple of 16");
  return false;
}

/// A host pointer to shared memory of this block or, by rank, of another.
std::byte* SharedBytes(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  return WindowPointer(x, op, lane, Space::kShared, address & ~kWindowMask, bytes, "bulk copy");
}

void BulkToShared(Exec& x, const Op& op, int lane, const std::byte* from, uint32_t bytes) {
  uint64_t to = BulkAddress(x, op, 0, lane) & ~kWindowMask;
  const uint32_t* slot = x.Source(op.src[3]);
  uint64_t barrier = ((op.variant & 4) ? slot[lane] : Lane<uint64_t>::Get(slot, lane)) & ~kWindowMask;
  const auto deliver = [&](uint64_t address, uint64_t at) {
    std::byte* bytes_to = SharedBytes(x, op, lane, address, bytes);
    if (bytes_to == nullptr) return;
    if (x.check) ShadowWrite(x, op, lane, address, bytes, false, true);
    std::memmove(bytes_to, from, bytes);
    CompleteTransaction(x, op, lane, at, static_cast<int32_t>(bytes));
  };
  if (op.list_size == 0) return deliver(to, barrier);
  // Multicast: the same offsets in every block that the mask names.
  const uint32_t blocks = x.Source(x.kernel->lists[op.list])[lane] & 0xffffu;
  constexpr uint64_t kOffset = (uint64_t{1} << kRankShift) - 1;
  for (uint32_t m = blocks; m != 0 && !x.stop; m &= m - 1) {
    const uint64_t rank = static_cast<uint64_t>(std::countr_zero(m)) + 1;
    deliver((to & kOffset) | rank << kRankShift, (barrier & kOffset) | rank << kRankShift);
  }
}

enum BulkDirection : uint8_t { kGlobalToShared, kSharedToShared, kSharedToGlobal };

template <BulkDirection kDirection>
void BulkCopy(Exec& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    if (x.stop) return;
    const uint32_t bytes = x.Source(op.src[2])[l];
    const uint64_t source = BulkAddress(x, op, 1, l);
    const uint64_t to = BulkAddress(x, op, 0, l);
    if (!BulkAligned(x, op, l, bytes, "the size") || !BulkAligned(x, op, l, source, "the source address") ||
        !BulkAligned(x, op, l, to, "the destination address") || bytes == 0)
      return;
    const std::byte* from = kDirection == kGlobalToShared ? GlobalPointer(x, op, l, source, bytes, "bulk copy")
                                                          : SharedBytes(x, op, l, source, bytes);
    if (from == nullptr) return;
    if (x.check && kDirection != kGlobalToShared) ShadowRead(x, op, l, source & ~kWindowMask, bytes);
    if (kDirection == kGlobalToShared) NoteGlobalRead(x, op, l, source, bytes);
    if (kDirection != kSharedToGlobal) {
      BulkToShared(x, op, l, from, bytes);
    } else if (std::byte* target = GlobalPointer(x, op, l, to, bytes, "bulk copy")) {
      NoteGlobalWrite(x, op, l, to, bytes, from);
      std::memcpy(target, from, bytes);
    }
    x.counts.async_copy_bytes += bytes;
  });
}

Handler BulkHandler(const Form& form) {
  if (form.Has("commit_group") || form.Has("wait_group") || form.Has("prefetch"))
    return [](Exec&, const Op&, uint32_t) {};
  if (form.instruction->opcode != "cp") return nullptr;
  // The destination's space stands first: cp.async.bulk.dst.src.
  const auto& modifiers = form.instruction->modifiers;
  if (modifiers.size() < 4) return nullptr;
  const std::string& to = modifiers[2];
  const std::string& from = modifiers[3];
  const bool to_shared = to == "shared::cluster" || to == "shared::cta";
  if (to_shared && !form.Has("mbarrier::complete_tx::bytes")) return nullptr;
  if (to_shared && from == "global") return BulkCopy<kGlobalToShared>;
  if (to_shared && from == "shared::cta") return form.Has("multicast::cluster") ? nullptr : BulkCopy<kSharedToShared>;
  if (to == "global" && from == "shared::cta" && form.Has("bulk_group") && !form.Has("cp_mask"))
    return BulkCopy<kSharedToGlobal>;
  return nullptr;
}

}  // namespace

Handler AsyncHandler(const Form& form, Op&) {
  if (!form.Has("async") || form.Has("tensor")) return nullptr;
  if (form.Has("bulk")) return BulkHandler(form);
  if (form.Has("mbarrier")) return form.Has("noinc") ? AsyncArrive<true> : AsyncArrive<false>;
  if (form.Has("commit_group")) return AsyncCommit;
  if (form.Has("wait_group") || form.Has("wait_all")) return AsyncWait;
  return AsyncCopy;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
