// Asynchronous copies: cp.async, and cp.async.bulk without tensor maps.
#include <algorithm>

#include "atunner/vgpu/instructions/bulk.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// Bytes that a lane's cp.async reads; zeros follow. Op::variant: the third operand is a predicate,
/// 1 = true ignores the source, 2 = false does.
uint32_t BytesToTake(const BlockState& x, const Op& op, int lane) {
  if (op.src[2] == INT32_MIN) return op.width;
  const uint32_t* size = x.Source(op.src[2]);
  if (op.variant == 0) return std::min<uint32_t>(op.width, size[lane]);
  return (*size >> lane & 1u) == (op.variant == 1 ? 1u : 0u) ? 0 : op.width;
}

/// cp.async: the bytes arrive at once, and count as in flight until the thread has waited for their
/// group.
void AsyncCopy(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t bytes = op.width;
  uint64_t sources[kLanes] = {};
  uint32_t reading = 0;  // lanes that do not fill with zeros alone
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t to_address = AddressOf(x, op, l);
    if (Resolve(Space::kGeneric, to_address) == Space::kShared) to_address &= ~kWindowMask;
    const uint64_t from_address = Lane<uint64_t>::Get(x.Source(op.src[1]), l) +
                                  static_cast<uint64_t>(static_cast<int32_t>(op.target));
    const uint32_t take = BytesToTake(x, op, l);
    sources[l] = from_address;
    if (!CheckAligned(x, op, l, to_address, bytes) || !CheckAligned(x, op, l, from_address, bytes))
      return;
    std::byte* to = WindowPointer(x, op, l, Space::kShared, to_address, bytes, "asynchronous copy");
    if (to == nullptr) return;
    const std::byte* from = take ? GlobalPointer(x, op, l, from_address, take, "asynchronous copy")
                                 : nullptr;
    if (take && from == nullptr) return;
    if (take) NoteGlobalCopy(x, op, l, from_address, take), reading |= 1u << l;
    if (x.checks.any) {
      ShadowWrite(x, op, l, to_address, bytes, false, false);
      const uint32_t thread = x.ThreadOf(l);
      for (uint64_t w = to_address / 4; w < (to_address + bytes) / 4; ++w) {
        x.shadow.words[w].in_flight |= kThreadCopy;
        x.shadow.only_read_in[w] = 0;
      }
      x.async.copies[thread].push_back(
          {static_cast<uint32_t>(to_address / 4), bytes / 4, x.async.copy_groups[thread]});
    }
    std::memset(to, 0, bytes);
    if (take) std::memcpy(to, from, take);
  }
  if (x.counting.enabled && reading != 0) CountCopy(x, sources, reading, bytes, op.variant != 0);
}

void AsyncCommit(BlockState& x, const Op&, uint32_t mask) {
  if (!x.checks.any) return;
  for (uint32_t m = mask; m != 0; m &= m - 1)
    ++x.async.copy_groups[x.ThreadOf(std::countr_zero(m))];
}

/// wait_group N: all but the newest N groups have landed. `imm` = N, or ~0 for wait_all.
void AsyncWait(BlockState& x, const Op& op, uint32_t mask) {
  if (!x.checks.any) return;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint32_t thread = x.ThreadOf(l);
    std::vector<PendingCopy>& pending = x.async.copies[thread];
    std::erase_if(pending, [&](const PendingCopy& copy) {
      const bool landed = op.imm == ~uint64_t{0} ||
                          copy.group + op.imm < x.async.copy_groups[thread];
      if (!landed) return false;
      for (uint32_t w = copy.word; w < copy.word + copy.words; ++w) {
        x.shadow.words[w].in_flight &= static_cast<uint8_t>(~kThreadCopy);
        x.shadow.words[w].write_epoch = x.shadow.epoch;  // visible to others only after a barrier
        x.shadow.words[w].writer = static_cast<uint16_t>(thread);
        x.shadow.words[w].write_sync = x.warp->sync_epoch;
      }
      return true;
    });
  }
}

}  // namespace

namespace {

// ---- cp.async.mbarrier.arrive
/// Copies land at once, so the arrival that follows them can be made now. Without .noinc the phase
/// expects one more.
template <bool kNoIncrement>
void AsyncArrive(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    if (x.stop) return;
    const uint32_t* a = x.Source(op.src[0]);
    const uint64_t address = op.variant ? a[l] : Lane<uint64_t>::Get(a, l);
    if (x.checks.any) {
      for (const PendingCopy& copy : x.async.copies[x.ThreadOf(l)]) {
        for (uint32_t w = copy.word; w < copy.word + copy.words; ++w)
          x.shadow.words[w].in_flight &= static_cast<uint8_t>(~kThreadCopy);
      }
      x.async.copies[x.ThreadOf(l)].clear();
    }
    if (kNoIncrement)
      ArriveAt(x, op, l, address, 1, 0, false);
    else
      (void)MbarrierAt(x, op, l, address);  // one arrival more and one made
    if (!kNoIncrement && x.checks.any) ReleasePhase(x, op, l, address & ~kWindowMask);
  });
  if (x.checks.any) ++x.shadow.epoch;  // what follows is not released
}

// ---- cp.async.bulk
bool BulkAligned(BlockState& x, const Op& op, int lane, uint64_t value, const char* what) {
  if (value % 16 == 0) return true;
  Report(x, op, Hazard::Kind::kMisaligned, lane,
         std::string("bulk copy: ") + what + " is not a multiple of 16");
  return false;
}

/// A host pointer to shared memory of this block or, by rank, of another.
std::byte* SharedBytes(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  return WindowPointer(x, op, lane, Space::kShared, address & ~kWindowMask, bytes, "bulk copy");
}

/// The operation of a cp.reduce.async.bulk, packed into Op::dst2 as a negative number, which is not
/// a slot.
struct BulkReduction {
  Reduction combine = nullptr;
  uint32_t element_bytes = 1;

  static int32_t Pack(size_t operation, ptx::Type type) {
    return ~static_cast<int32_t>(operation | static_cast<size_t>(type) << 8);
  }
  static BulkReduction Unpack(int32_t packed) {
    if (packed >= 0) return {};
    const auto code = static_cast<uint32_t>(~packed);
    const auto type = static_cast<ptx::Type>(code >> 8);
    return {FindReduction(kReductions[code & 255], type),
            static_cast<uint32_t>(ptx::BitsOf(type) / 8)};
  }
};

/// Combines elements, or copies where there is no reduction.
void Deliver(std::byte* to, const std::byte* from, uint32_t bytes, const BulkReduction& reduce,
             bool global) {
  if (reduce.combine == nullptr) {
    std::memmove(to, from, bytes);
    return;
  }
  for (uint32_t i = 0; i < bytes; i += reduce.element_bytes)
    reduce.combine(to + i, from + i, global);
}

void BulkToShared(BlockState& x, const Op& op, int lane, const std::byte* from, uint32_t bytes,
                  const BulkReduction& reduce) {
  const uint32_t* multicast = op.list_size > 0 ? x.Source(x.kernel->lists[op.list]) : nullptr;
  ForDestinations(x, op, lane, multicast, [&](uint64_t address, uint64_t barrier) {
    std::byte* to = SharedBytes(x, op, lane, address, bytes);
    if (to == nullptr || !NoteBulkWrite(x, op, lane, address, bytes, barrier)) return;
    Deliver(to, from, bytes, reduce, false);
    CompleteTransaction(x, op, lane, barrier, static_cast<int32_t>(bytes));
  });
}

enum BulkDirection : uint8_t { kGlobalToShared, kSharedToShared, kSharedToGlobal };

template <BulkDirection kDirection>
void BulkCopy(BlockState& x, const Op& op, uint32_t mask) {
  const BulkReduction reduce = BulkReduction::Unpack(op.dst2);
  ForLanes(mask, [&](int l) {
    if (x.stop) return;
    const uint32_t bytes = x.Source(op.src[2])[l];
    const uint64_t source = BulkAddress(x, op, 1, l);
    const uint64_t to = BulkAddress(x, op, 0, l);
    if (!BulkAligned(x, op, l, bytes, "the size") ||
        !BulkAligned(x, op, l, source, "the source address") ||
        !BulkAligned(x, op, l, to, "the destination address") || bytes == 0)
      return;
    const std::byte* from = kDirection == kGlobalToShared
                                ? GlobalPointer(x, op, l, source, bytes, "bulk copy")
                                : SharedBytes(x, op, l, source, bytes);
    if (from == nullptr) return;
    if (kDirection != kGlobalToShared &&
        !NoteBulkRead(x, op, l, source & ~kWindowMask, bytes, kDirection == kSharedToGlobal))
      return;
    if (kDirection == kGlobalToShared) NoteGlobalCopy(x, op, l, source, bytes);
    x.timing.read_before = true;
    x.counting.total.async_copy_bytes += bytes;
    if (x.counting.enabled && kDirection != kSharedToShared)
      CountBulk(x, kDirection == kGlobalToShared ? source : to, bytes,
                kDirection == kSharedToGlobal);
    if (kDirection != kSharedToGlobal) {
      BulkToShared(x, op, l, from, bytes, reduce);
    } else if (std::byte* target = GlobalPointer(x, op, l, to, bytes, "bulk copy")) {
      const bool combines = reduce.combine != nullptr;
      NoteGlobalWrite(x, op, l, to, bytes, combines ? nullptr : from, combines);
      Deliver(target, from, bytes, reduce, true);
    }
  });
}

void BulkCommit(BlockState& x, const Op&, uint32_t mask) {
  if (!x.checks.any) return;
  ForLanes(mask, [&](int l) { ++x.async.bulk_groups[x.ThreadOf(l)]; });
}

/// All but the newest `imm` groups have read their source.
void BulkWait(BlockState& x, const Op& op, uint32_t mask) {
  if (!x.checks.any) return;
  ForLanes(mask, [&](int l) {
    const uint32_t groups = x.async.bulk_groups[x.ThreadOf(l)];
    FinishReads(x, static_cast<uint16_t>(x.ThreadOf(l)),
                groups > op.imm ? groups - static_cast<uint32_t>(op.imm) : 0);
  });
}

/// The operation of a reducing form, packed into Op::dst2; false when there is none.
bool PackReduction(const Form& form, Op& op) {
  const auto at = std::ranges::find_if(kReductions,
                                       [&](std::string_view name) { return form.Has(name); });
  if (at == std::end(kReductions) || FindReduction(*at, form.type) == nullptr) return false;
  op.dst2 = BulkReduction::Pack(static_cast<size_t>(at - std::begin(kReductions)), form.type);
  return true;
}

Handler BulkHandler(const Form& form, Op& op) {
  if (form.Has("commit_group")) return BulkCommit;
  if (form.Has("wait_group")) return BulkWait;
  if (form.Has("prefetch")) return [](BlockState&, const Op&, uint32_t) {};
  // The destination's space stands first: cp.async.bulk.dst.src, cp.reduce.async.bulk.dst.src.
  const bool reduces = form.Has("reduce");
  const auto& modifiers = form.instruction->modifiers;
  if (modifiers.size() < (reduces ? 6u : 4u)) return nullptr;
  const std::string& to = modifiers[reduces ? 3 : 2];
  const std::string& from = modifiers[reduces ? 4 : 3];
  if (reduces && (from != "shared::cta" || !PackReduction(form, op))) return nullptr;
  const bool to_shared = to == "shared::cluster" || to == "shared::cta";
  if (to_shared && !form.Has("mbarrier::complete_tx::bytes")) return nullptr;
  if (to_shared && from == "global") return BulkCopy<kGlobalToShared>;
  if (to_shared && from == "shared::cta")
    return form.Has("multicast::cluster") ? nullptr : BulkCopy<kSharedToShared>;
  if (to == "global" && from == "shared::cta" && form.Has("bulk_group") && !form.Has("cp_mask"))
    return BulkCopy<kSharedToGlobal>;
  return nullptr;
}

/// The list holds the values.
void RemoteStore(BlockState& x, const Op& op, uint32_t mask) {
  const BulkReduction reduce = BulkReduction::Unpack(op.dst2);
  const uint32_t bytes = uint32_t{op.width} * op.list_size;
  ForLanes(mask, [&](int l) {
    const uint64_t address = BulkAddress(x, op, 0, l) & ~kWindowMask;
    if (x.stop || !CheckAligned(x, op, l, address, bytes)) return;
    std::byte* to = SharedBytes(x, op, l, address, bytes);
    const uint64_t barrier = BulkBarrier(x, op, l);
    if (to == nullptr || !NoteBulkWrite(x, op, l, address, bytes, barrier)) return;
    std::byte values[16];
    for (int i = 0; i < op.list_size; ++i) {
      const uint32_t* s = x.Source(x.kernel->lists[op.list + static_cast<size_t>(i)]);
      std::memcpy(values + i * op.width, s + l * (op.width / 4), op.width);
    }
    Deliver(to, values, bytes, reduce, false);
    CompleteTransaction(x, op, l, barrier, static_cast<int32_t>(bytes));
  });
}

}  // namespace

Handler RemoteStoreHandler(const Form& form, Op& op) {
  const int bits = ptx::BitsOf(form.type);
  if (!form.Has("mbarrier::complete_tx::bytes") || (bits != 32 && bits != 64)) return nullptr;
  op.width = static_cast<uint8_t>(bits / 8);
  return form.instruction->opcode == "st" || PackReduction(form, op) ? RemoteStore : nullptr;
}

Handler AsyncHandler(const Form& form, Op& op) {
  if (!form.Has("async") || form.Has("tensor")) return nullptr;
  if (form.Has("bulk")) return BulkHandler(form, op);
  if (form.Has("mbarrier")) return form.Has("noinc") ? AsyncArrive<true> : AsyncArrive<false>;
  if (form.Has("commit_group")) return AsyncCommit;
  if (form.Has("wait_group") || form.Has("wait_all")) return AsyncWait;
  return AsyncCopy;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
