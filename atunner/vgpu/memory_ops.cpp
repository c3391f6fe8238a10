// Loads and stores.
#include <algorithm>

#include "atunner/vgpu/access.h"
#include "atunner/vgpu/pending.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

void StoreRegister(uint32_t* slot, int lane, uint64_t raw, const Op& op, bool wide) {
  if (op.sign_extend) {
    const int shift = 64 - 8 * op.width;
    raw = static_cast<uint64_t>(static_cast<int64_t>(raw << shift) >> shift);
  }
  if (wide)
    Lane<uint64_t>::Set(slot, lane, raw);
  else
    slot[lane] = static_cast<uint32_t>(raw);
}

/// Slot of element `i` of a vector access; imm2 bit i of `variant` says that it is 64 bits wide.
int32_t ElementSlot(const Exec& x, const Op& op, int i) {
  return x.kernel->lists[static_cast<size_t>(op.list) + static_cast<size_t>(i)];
}

void ReadConverted(Exec& x, const Op& op, int lane, const std::byte* from) {
  for (int i = 0; i < op.list_size; ++i) {
    const int32_t slot = ElementSlot(x, op, i);
    if (slot == INT32_MIN) continue;  // the sink `_`
    uint64_t raw = 0;
    std::memcpy(&raw, from + i * op.width, op.width);
    StoreRegister(x.Slot(slot), lane, raw, op, op.variant & 1);
  }
}

// ---- one test for the whole warp ------------------------------------------------------------------------------------
/// Where the active lanes of an aligned access inside one allocation go: host bytes of lane l at base + offset[l].
struct Warpwide {
  uint64_t offset[kLanes];
  std::byte* base = nullptr;
  Space space = Space::kGlobal;
  const Range* range = nullptr;  ///< of global memory
};

/// Addresses of the active lanes with their bounds, as signed numbers: vectors compare those.
struct Span {
  int64_t low = INT64_MAX;
  int64_t high = INT64_MIN;
  uint64_t bits = 0;
};
template <class F>
Span GatherFrom(uint32_t mask, uint64_t* to, F&& address) {
  Span span;
  ForLanes(mask, [&](int l) {
    const uint64_t v = address(l);
    to[l] = v;
    span.low = std::min(span.low, static_cast<int64_t>(v));
    span.high = std::max(span.high, static_cast<int64_t>(v));
    span.bits |= v;
  });
  return span;
}
Span Gather(const Exec& x, const Op& op, uint32_t mask, uint64_t* to) {
  const uint64_t offset = op.imm;
  if (op.src[0] == INT32_MIN) return GatherFrom(mask, to, [&](int) { return offset; });
  const uint32_t* a = x.Source(op.src[0]);
  if (op.narrow_address) return GatherFrom(mask, to, [&](int l) { return a[l] + offset; });
  return GatherFrom(mask, to, [&](int l) { return Lane<uint64_t>::Get(a, l) + offset; });
}

/// The allocation that holds all of it, which is remembered; nullptr = there is none.
const Range* OneAllocation(Exec& x, uint64_t low, uint64_t end) {
  for (const Range& range : x.ranges) {
    if (range.Contains(low, end)) return &range;
  }
  const auto range = x.launch->memory->Find(low);
  if (!range || !range->Contains(low, end)) return nullptr;
  Range& remembered = x.ranges[x.oldest_range++ % x.ranges.size()];
  remembered = *range;
  return &remembered;
}

/// False where a lane needs a look of its own: another space or allocation, misalignment, an error.
bool Locate(Exec& x, const Op& op, uint32_t mask, uint32_t bytes, Warpwide& w) {
  const Span span = Gather(x, op, mask, w.offset);
  if (span.low < 0) return false;
  auto low = static_cast<uint64_t>(span.low);
  auto end = static_cast<uint64_t>(span.high) + bytes;
  w.space = op.space;
  if (op.space == Space::kGeneric) {
    const uint64_t window = low & kWindowMask;
    if ((end & kWindowMask) != window) return false;
    w.space = Resolve(Space::kGeneric, low);
    if (w.space != Space::kGlobal) {
      ForLanes(mask, [&](int l) { w.offset[l] &= ~kWindowMask; });
      end &= ~kWindowMask;
    }
  }
  if ((span.bits & (bytes - 1)) != 0 && w.space != Space::kParam) return false;
  switch (w.space) {
    case Space::kGlobal:
    case Space::kConst:
      w.base = nullptr;
      w.range = OneAllocation(x, low, end);
      return w.range != nullptr;
    case Space::kShared:
      w.base = x.shared.data();
      return end <= x.shared.size();
    case Space::kLocal: {
      const uint64_t per_thread = x.kernel->local_bytes;
      if (end > per_thread) return false;
      w.base = x.local.data();
      ForLanes(mask, [&](int l) { w.offset[l] += x.ThreadOf(l) * per_thread; });
      return true;
    }
    default:
      w.base = const_cast<std::byte*>(x.launch->params.data());
      return end <= x.launch->params.size();
  }
}

const std::byte* At(const Warpwide& w, int lane) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(w.base) + w.offset[lane]);
}

void ReadWarp(Exec& x, const Op& op, uint32_t mask, const Warpwide& w) {
  for (int i = 0; i < op.list_size; ++i) {
    const int32_t slot = ElementSlot(x, op, i);
    if (slot == INT32_MIN) continue;
    uint32_t* d = x.Slot(slot);
    const bool wide = op.variant & 1;
    if (op.width == 4 && !wide) {
      ForLanes(mask, [&](int l) { std::memcpy(d + l, At(w, l) + i * 4, 4); });
    } else if (op.width == 8) {
      ForLanes(mask, [&](int l) { std::memcpy(d + 2 * l, At(w, l) + i * 8, 8); });
    } else {
      ForLanes(mask, [&](int l) {
        uint64_t raw = 0;
        std::memcpy(&raw, At(w, l) + i * op.width, op.width);
        StoreRegister(d, l, raw, op, wide);
      });
    }
  }
}

void WriteWarp(Exec& x, const Op& op, uint32_t mask, const Warpwide& w) {
  const auto to = [&](int l) { return const_cast<std::byte*>(At(w, l)); };
  // Lane by lane: of several that write the same place, the last one stays whole.
  ForLanes(mask, [&](int l) {
    for (int i = 0; i < op.list_size; ++i) {
      const uint32_t* s = x.Source(ElementSlot(x, op, i));
      if (op.width == 4)
        std::memcpy(to(l) + i * 4, s + l * (op.variant & 1 ? 2 : 1), 4);
      else if (op.width == 8)
        std::memcpy(to(l) + i * 8, s + l * 2, 8);
      else
        std::memcpy(to(l) + i * op.width, s + l * (op.variant & 1 ? 2 : 1), op.width);
    }
  });
}

/// The common case of the shadow: nothing but earlier epochs in the words. False = look closer, from this lane on.
bool QuietRead(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  if (bytes % 4 != 0 || op.relaxed) return false;
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  SharedShadow* const first = &x.shadow[address / 4];
  for (SharedShadow* s = first; s < first + bytes / 4; ++s) {
    if (s->initialised != 0xf || s->in_flight) return false;
    if (s->writer == kBulkParty ? x.warp->seen_epoch < s->write_epoch : s->write_epoch == x.epoch) return false;
    const bool read_now = s->read_epoch == x.epoch;
    if (read_now && s->reader >= kSeveral) continue;  // several stay several
    s->reader = read_now && s->reader / kLanes != x.warp->index ? uint16_t{kSeveral} : thread;
    s->read_epoch = x.epoch;
    s->read_sync = x.warp->sync_epoch;
    s->read_line = op.source_line ? op.source_line : op.line;
  }
  return true;
}
bool QuietWrite(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  if (bytes % 4 != 0 || op.relaxed) return false;
  SharedShadow* const first = &x.shadow[address / 4];
  for (SharedShadow* s = first; s < first + bytes / 4; ++s) {
    if (s->write_epoch == x.epoch || s->read_epoch == x.epoch || s->in_flight || s->writer == kBulkParty) return false;
    s->initialised = 0xf;
    s->write_epoch = x.epoch;
    s->writer = static_cast<uint16_t>(x.ThreadOf(lane));
    s->write_sync = x.warp->sync_epoch;
    s->write_line = op.source_line ? op.source_line : op.line;
  }
  return true;
}

/// Threads' local memories are interleaved word by word: lanes that access the same place of theirs do so together.
uint32_t DistinctPlaces(const Exec& x, const uint64_t* addresses, uint32_t mask) {
  uint64_t places[kLanes];
  uint32_t n = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint64_t place = addresses[std::countr_zero(m)] % std::max(1u, x.kernel->local_bytes);
    if (n > 0 && places[n - 1] == place) continue;
    if (std::find(places, places + n, place) == places + n) places[n++] = place;
  }
  return n;
}

void CountAccess(Exec& x, const uint64_t* addresses, uint32_t mask, Space space, uint32_t bytes, bool store) {
  if (space == Space::kGlobal) CountGlobal(x, addresses, mask, bytes, store);
  if (space == Space::kShared) CountShared(x, addresses, mask, bytes);
  if (space == Space::kLocal) {
    const uint32_t words = DistinctPlaces(x, addresses, mask);
    x.counts.local_requests += words;
    x.touch = {Touch::Level::kL1, words};
  }
}

/// Lanes of one access that went one by one, by space, so that they count as one request each.
struct CountedLanes {
  uint64_t addresses[kLanes] = {};
  uint32_t global = 0;
  uint32_t shared = 0;
  uint32_t local = 0;
  void Add(int lane, uint64_t address, Space space) {
    addresses[lane] = address;
    uint32_t* mask = space == Space::kGlobal   ? &global
                     : space == Space::kShared ? &shared
                     : space == Space::kLocal  ? &local
                                               : nullptr;
    if (mask != nullptr) *mask |= 1u << lane;
  }
  void Count(Exec& x, uint32_t bytes, bool store) const {
    if (!x.count) return;
    if (global) CountAccess(x, addresses, global, Space::kGlobal, bytes, store);
    if (shared) CountAccess(x, addresses, shared, Space::kShared, bytes, store);
    if (local) CountAccess(x, addresses, local, Space::kLocal, bytes, store);
  }
};

void CheckOneRead(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  uint64_t addresses[kLanes];
  addresses[lane] = address;
  if (const Range* range = RangeOf(x, address)) CheckGlobalRead(x, op, 1u << lane, addresses, bytes, *range);
}

/// Whether the lane before, or that of the other half warp, reads the same place: broadcasts are looked at once.
bool ReadsAsBefore(const Warpwide& w, uint32_t mask, int lane) {
  const auto same = [&](int other) {
    return other >= 0 && ((mask >> other) & 1u) != 0 && w.offset[other] == w.offset[lane];
  };
  return same(lane - 1) || same(lane - kLanes / 2);
}

/// What the checks want to know of a load whose place is known.
void CheckLoad(Exec& x, const Op& op, uint32_t mask, uint32_t bytes, const Warpwide& w) {
  if (w.space == Space::kShared && x.check) {
    for (uint32_t m = mask; m != 0 && !x.stop; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (ReadsAsBefore(w, mask, l)) continue;
      if (!QuietRead(x, op, l, w.offset[l], bytes)) ShadowRead(x, op, l, w.offset[l], bytes);
    }
  }
  if (w.space == Space::kGlobal && x.track) CheckGlobalRead(x, op, mask, w.offset, bytes, *w.range);
  if (w.space == Space::kLocal && x.check_global)
    ForLanes(mask, [&](int l) { CheckLocalRead(x, op, l, At(w, l), bytes); });
}

// ---- lane by lane ---------------------------------------------------------------------------------------------------
/// Loads where the lanes differ in space or allocation, and finds what is wrong where something is.
void LoadLanes(Exec& x, const Op& op, uint32_t mask, uint32_t bytes) {
  CountedLanes counted;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t address = AddressOf(x, op, l);
    const Space space = Resolve(op.space, address);
    if (space != Space::kParam && !CheckAligned(x, op, l, address, bytes)) return;
    const bool global = space == Space::kGlobal || space == Space::kConst;
    const std::byte* from = global ? GlobalPointer(x, op, l, address, bytes, "load")
                                   : WindowPointer(x, op, l, space, address, bytes, "load");
    if (from == nullptr) return;
    if (space == Space::kShared && x.check) ShadowRead(x, op, l, address, bytes);
    if (space == Space::kGlobal && x.track) CheckOneRead(x, op, l, address, bytes);
    if (space == Space::kLocal && x.check_global) CheckLocalRead(x, op, l, from, bytes);
    counted.Add(l, address, space);
    ReadConverted(x, op, l, from);
  }
  counted.Count(x, bytes, false);
}

void StoreLanes(Exec& x, const Op& op, uint32_t mask, uint32_t bytes) {
  CountedLanes counted;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t address = AddressOf(x, op, l);
    const Space space = Resolve(op.space, address);
    if (!CheckAligned(x, op, l, address, bytes)) return;
    std::byte* to = space == Space::kGlobal ? GlobalPointer(x, op, l, address, bytes, "store")
                                            : WindowPointer(x, op, l, space, address, bytes, "store");
    if (to == nullptr) return;
    std::byte value[64];
    for (int i = 0; i < op.list_size; ++i) {
      const uint32_t* s = x.Source(ElementSlot(x, op, i));
      const uint64_t raw = op.width == 8 ? Lane<uint64_t>::Get(s, l) : s[l * (op.variant & 1 ? 2 : 1)];
      std::memcpy(value + i * op.width, &raw, op.width);
    }
    if (space == Space::kShared && x.check)
      ShadowWrite(x, op, l, address, bytes, std::memcmp(to, value, bytes) == 0 && Initialised(x, address), false);
    if (space == Space::kGlobal && x.track) {
      if (const Range* range = RangeOf(x, address)) CheckGlobalWrite(x, op, l, address, bytes, *range, value, false);
    }
    if (space == Space::kLocal) MarkLocal(x, to, bytes);
    counted.Add(l, address, space);
    std::memcpy(to, value, bytes);
  }
  counted.Count(x, bytes, true);
}

void Load(Exec& x, const Op& op, uint32_t mask) {
  if (op.fence) OrderAll(x);
  if (op.relaxed) {
    x.polled = true;
    SeeAll(x);
  }
  const uint32_t bytes = uint32_t{op.width} * op.list_size;
  Warpwide w;
  if (!Locate(x, op, mask, bytes, w)) return LoadLanes(x, op, mask, bytes);
  CheckLoad(x, op, mask, bytes, w);
  ReadWarp(x, op, mask, w);
  if (op.relaxed) Acquire(x);
  if (x.count) CountAccess(x, w.offset, mask, w.space, bytes, false);
}

void Store(Exec& x, const Op& op, uint32_t mask) {
  if (op.fence) OrderAll(x);
  const uint32_t bytes = uint32_t{op.width} * op.list_size;
  Warpwide w;
  const bool writable = op.space != Space::kConst && op.space != Space::kParam;
  if (!writable || !Locate(x, op, mask, bytes, w) || w.space == Space::kParam) return StoreLanes(x, op, mask, bytes);
  if (w.space == Space::kShared && x.check) {
    // A word that this epoch has seen already may be in conflict: then the values decide, lane by lane.
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (!QuietWrite(x, op, l, w.offset[l], bytes)) return StoreLanes(x, op, mask, bytes);
    }
  }
  if (w.space == Space::kGlobal && x.track) {
    if (!StoreDense(x, op, mask, w.offset, bytes, *w.range)) return StoreLanes(x, op, mask, bytes);
    if (x.count) CountAccess(x, w.offset, mask, w.space, bytes, true);
    return;
  }
  if (w.space == Space::kLocal && x.check_global) ForLanes(mask, [&](int l) { MarkLocal(x, At(w, l), bytes); });
  WriteWarp(x, op, mask, w);
  if (x.count) CountAccess(x, w.offset, mask, w.space, bytes, true);
}

void NoEffect(Exec&, const Op&, uint32_t) {}

}  // namespace

Handler MemoryHandler(const Form& form, Op&) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "ld" || opcode == "ldu") return Load;
  if (opcode == "st") return Store;
  return NoEffect;  // prefetch, prefetchu, discard, applypriority: hints
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
