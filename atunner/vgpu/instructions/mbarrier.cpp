// mbarrier: arrivals, expected bytes, waiting by state or parity.
#include "atunner/vgpu/instructions/mbarrier.h"

#include <algorithm>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// The object must change hands whole: several instructions of one warp run one after another,
/// blocks of a cluster in one thread of the host, so plain reads and writes do.
Mbarrier Read(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return Mbarrier::Decode(word);
}

void Write(BlockState& x, const Op& op, int lane, uint64_t address, std::byte* at,
           Mbarrier barrier) {
  if (barrier.pending == 0 && barrier.bytes == 0) {
    barrier.phase = !barrier.phase;
    barrier.pending = barrier.expected;
    OrderPeers(*x.peers);
    address &= ~kWindowMask;
    BlockState* owner = x.checks.any ? SharedOwner(x, op, lane, address) : nullptr;
    if (owner != nullptr) FinishPhase(*owner, address);
  }
  const uint64_t word = barrier.Encode();
  std::memcpy(at, &word, sizeof word);
}

uint32_t CountOf(const BlockState& x, const Op& op, int lane, int source) {
  const int32_t slot = op.src[static_cast<size_t>(source)];
  return slot == INT32_MIN ? 1 : x.Source(slot)[lane];
}

uint64_t SharedAddress(const BlockState& x, const Op& op, int lane) {
  return AddressOf(x, op, lane) & ~kWindowMask;
}

void Init(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    const uint64_t address = SharedAddress(x, op, l);
    if (x.stop || !CheckAligned(x, op, l, address, 8)) return;
    std::byte* at = WindowPointer(x, op, l, Space::kShared, address, 8, "mbarrier");
    if (at == nullptr) return;
    const uint32_t count = CountOf(x, op, l, 1);
    if (count == 0 || count > 0xfffff)
      return Report(x, op, Hazard::Kind::kTrap, l,
                    "initialises an mbarrier for " + std::to_string(count) + " arrivals");
    if (x.checks.any) ShadowWrite(x, op, l, address, 8, false, true);
    const uint64_t word = Mbarrier{count, count, 0, false}.Encode();
    std::memcpy(at, &word, sizeof word);
  });
}

/// src[1] holds the bytes of .expect_tx, or a count.
template <bool kDrop, bool kExpectBytes>
void Arrive(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    if (x.stop) return;
    const uint64_t address = SharedAddress(x, op, l);
    const uint32_t count = kExpectBytes ? 1 : CountOf(x, op, l, 1);
    const int32_t bytes = kExpectBytes ? static_cast<int32_t>(CountOf(x, op, l, 1)) : 0;
    const uint64_t state = ArriveAt(x, op, l, address, count, bytes, kDrop);
    if (op.dst != INT32_MIN) Lane<uint64_t>::Set(x.Slot(op.dst), l, state);
  });
  if (x.checks.any) ++x.shadow.epoch;  // what follows is not released
}

template <bool kComplete>
void Transaction(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    if (x.stop) return;
    const auto bytes = static_cast<int32_t>(CountOf(x, op, l, 1));
    CompleteTransaction(x, op, l, SharedAddress(x, op, l), kComplete ? bytes : -bytes);
  });
}

template <bool kParity>
void Wait(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t done = 0;
  const std::byte* waited = nullptr;
  ForLanes(mask, [&](int l) {
    if (x.stop) return;
    const std::byte* at = MbarrierAt(x, op, l, SharedAddress(x, op, l));
    if (at == nullptr) return;
    waited = at;
    const uint32_t* phase = x.Source(op.src[1]);
    const bool awaited = kParity ? (phase[l] & 1u) != 0
                                 : Mbarrier::Decode(Lane<uint64_t>::Get(phase, l)).phase;
    if (Read(at).phase == awaited) return;
    done |= 1u << l;
    if (x.checks.any) SeePhase(x, SharedAddress(x, op, l));
  });
  if (op.dst != INT32_MIN) {
    uint32_t* d = x.Slot(op.dst);
    *d = (*d & ~mask) | done;
  }
  if (done != mask) x.progress.yield = true;
  if (x.timing.enabled && done == mask) NoteWaited(x, waited);
}

void PendingCount(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    x.Slot(op.dst)[l] = Mbarrier::Decode(Lane<uint64_t>::Get(x.Source(op.src[0]), l)).pending;
  });
}

void Invalidate(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) { (void)MbarrierAt(x, op, l, SharedAddress(x, op, l)); });
}

}  // namespace

std::byte* MbarrierAt(BlockState& x, const Op& op, int lane, uint64_t address) {
  address &= ~kWindowMask;
  if (!CheckAligned(x, op, lane, address, 8)) return nullptr;
  std::byte* at = WindowPointer(x, op, lane, Space::kShared, address, 8, "mbarrier");
  if (at == nullptr || !x.checks.any || Initialised(x, address)) return at;
  Report(x, op, Hazard::Kind::kUninitialisedShared, lane,
         "uses the mbarrier at shared address " + Hex(address) + " before mbarrier.init");
  return x.stop ? nullptr : at;
}

void CompleteTransaction(BlockState& x, const Op& op, int lane, uint64_t address, int32_t bytes) {
  std::byte* at = MbarrierAt(x, op, lane, address);
  if (at == nullptr) return;
  Mbarrier barrier = Read(at);
  barrier.bytes -= bytes;
  Write(x, op, lane, address, at, barrier);
  if (x.timing.enabled) NoteTransfer(x, at, static_cast<uint32_t>(std::max(bytes, 0)));
}

uint64_t ArriveAt(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t count,
                  int32_t bytes, bool drop) {
  std::byte* at = MbarrierAt(x, op, lane, address);
  if (at == nullptr) return 0;
  Mbarrier barrier = Read(at);
  const uint64_t state = barrier.Encode();
  if (count > barrier.pending) {
    Report(x, op, Hazard::Kind::kTrap, lane,
           "arrives at an mbarrier more often than its phase expects (" +
               std::to_string(barrier.expected) + ")");
    return state;
  }
  barrier.pending -= count;
  barrier.bytes += bytes;
  if (drop) barrier.expected -= count;
  if (x.checks.any) ReleasePhase(x, op, lane, address & ~kWindowMask);
  Write(x, op, lane, address, at, barrier);
  if (x.timing.enabled) {
    const Latencies& latencies = x.launch->latencies;
    const double latency = IsRemote(x, address) ? latencies.remote_arrival : latencies.arrival;
    NoteArrival(x, at, {latency, latency});
  }
  return state;
}

Handler MbarrierHandler(const Form& form, Op& op) {
  if (form.Has("init")) return Init;
  if (form.Has("inval")) return Invalidate;
  if (form.Has("pending_count")) return PendingCount;
  if (form.Has("test_wait") || form.Has("try_wait")) {
    op.flow = Flow::kMayYield;
    op.variant = form.Has("try_wait") ? kSuspends : 0;
    return form.Has("parity") ? Wait<true> : Wait<false>;
  }
  const bool expects = form.Has("expect_tx");
  if (form.Has("arrive_drop")) return expects ? Arrive<true, true> : Arrive<true, false>;
  if (form.Has("arrive")) return expects ? Arrive<false, true> : Arrive<false, false>;
  if (expects) return Transaction<false>;
  return form.Has("complete_tx") ? Transaction<true> : nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
