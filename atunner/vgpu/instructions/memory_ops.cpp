// Loads and stores.
#include <algorithm>

#include "atunner/vgpu/checks/cluster_shadow.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/checks/synchronisation.h"
#include "atunner/vgpu/checks/warp_exchange.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lane_values.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

// ---- checks and counts
/// True if one more read changes the shadow of no word of a shared access:
/// RaceShadow::only_read_in.
bool AllOnlyRead(const BlockState& x, const Warpwide& w, uint32_t mask, uint32_t bytes) {
  const uint32_t words = bytes / 4;
  const uint32_t* only_read_in = x.shadow.only_read_in.data();
  uint32_t changes = 0;
  if (w.layout != Layout::kApart) {
    const uint32_t* first = only_read_in + (w.low + w.bias) / 4;
    const uint32_t all = w.layout == Layout::kSame ? words : words * kLanes;
    for (uint32_t i = 0; i < all; ++i) changes |= first[i] ^ x.shadow.epoch;
    return changes == 0;
  }
  w.WithPlaces([&](auto place) {
    const auto word = [&](int l) {
      return only_read_in + static_cast<size_t>(place(l) - x.shared.bytes.data()) / 4;
    };
    changes = *word(std::countr_zero(mask)) ^ x.shadow.epoch;
    if (changes != 0) return;
    const uint32_t distinct = w.Distinct(mask);
    if (words == 1) return ForLanes(distinct, [&](int l) { changes |= *word(l) ^ x.shadow.epoch; });
    ForLanes(distinct, [&](int l) {
      const uint32_t* first = word(l);
      for (uint32_t i = 0; i < words; ++i) changes |= first[i] ^ x.shadow.epoch;
    });
  });
  return changes == 0;
}

/// True if the compiler widened loads of the kernel. Bytes that they drop do not count as read.
bool WidensLoads(const Kernel& kernel) {
  return std::ranges::any_of(kernel.code,
                             [](const Code& code) { return !code.function->used_bytes.empty(); });
}

/// The common case of the shadow: nothing but earlier epochs in the words. What all lanes of an
/// access share is looked up once.
class QuietAccess {
 public:
  QuietAccess(BlockState& x, const Op& op, uint32_t bytes)
      : words_(bytes % 4 == 0 && !op.relaxed && !op.order.polls ? bytes / 4 : 0),
        shadow_(x.shadow.words.data()),
        calm_(x.shadow.only_read_in.data()),
        first_thread_(x.ThreadOf(0)),
        epoch_(x.shadow.epoch),
        before_(x.warp->before.all()),
        common_(x.shadow.common_epoch),
        sync_(x.warp->sync_epoch),
        seen_(x.warp->seen_epoch),
        line_(LineOf(x, op)),
        widened_(bytes > 4 && WidensLoads(*x.kernel)) {}

  /// Fast path of ShadowRead. False if this lane and the following ones must be checked. The latest
  /// of several readers in one warp stands for all of them.
  bool Read(int lane, uint64_t address) const {
    if (widened_) return false;
    for (uint64_t word = address / 4; word < address / 4 + words_; ++word) {
      SharedShadow& s = shadow_[word];
      if (s.initialised != 0xf || s.in_flight) return false;
      const bool bulk = s.writer == kBulkAccessor;
      if (bulk ? seen_ < s.write_epoch : s.write_epoch >= before_) return false;
      const bool others = s.read_epoch == epoch_ && (s.reader >= kSeveralThreads ||
                                                     s.reader / kLanes != first_thread_ / kLanes);
      s.reader = others ? uint16_t{kSeveralThreads} : Thread(lane);
      s.last_reader = Thread(lane);
      s.read_epoch = epoch_;
      s.read_sync = sync_;
      s.read_line = line_;
      if (others && !bulk && s.write_epoch < common_) calm_[word] = epoch_;
    }
    return words_ != 0;
  }
  bool Write(int lane, uint64_t address) const {
    for (uint64_t word = address / 4; word < address / 4 + words_; ++word) {
      SharedShadow& s = shadow_[word];
      if (s.write_epoch >= before_ || s.read_epoch >= before_ || s.in_flight ||
          s.writer == kBulkAccessor)
        return false;
      s.initialised = 0xf;
      s.write_epoch = epoch_;
      s.writer = Thread(lane);
      s.write_sync = sync_;
      s.write_line = line_;
    }
    return words_ != 0;
  }

 private:
  uint16_t Thread(int lane) const {
    return static_cast<uint16_t>(first_thread_ + static_cast<uint32_t>(lane));
  }

  uint32_t words_;
  SharedShadow* shadow_;
  uint32_t* calm_;
  uint32_t first_thread_, epoch_, before_, common_, sync_, seen_, line_;
  bool widened_;  ///< the bytes that are read may be fewer
};

/// Threads' local memories are interleaved word by word: lanes that access the same place of theirs
/// do so together.
uint32_t DistinctPlaces(const BlockState& x, const uint64_t* addresses, uint32_t mask) {
  uint64_t places[kLanes];
  uint32_t n = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint64_t place = addresses[std::countr_zero(m)] % std::max(1u, x.kernel->local_bytes);
    if (n > 0 && places[n - 1] == place) continue;
    if (std::find(places, places + n, place) == places + n) places[n++] = place;
  }
  return n;
}

void CountAccess(BlockState& x, const uint64_t* addresses, uint32_t mask, Space space,
                 uint32_t bytes, bool store) {
  if (space == Space::kGlobal) CountGlobal(x, addresses, mask, bytes, store);
  if (space == Space::kShared) CountShared(x, addresses, mask, bytes);
  if (space == Space::kLocal) {
    const uint32_t words = DistinctPlaces(x, addresses, mask);
    x.counting.total.local_requests += words;
    x.timing.touch = {Touch::Level::kL1, words};
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
  void Count(BlockState& x, uint32_t bytes, bool store) const {
    if (!x.counting.enabled) return;
    if (global) CountAccess(x, addresses, global, Space::kGlobal, bytes, store);
    if (shared) CountAccess(x, addresses, shared, Space::kShared, bytes, store);
    if (local) CountAccess(x, addresses, local, Space::kLocal, bytes, store);
  }
};

void CheckOneRead(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  uint64_t addresses[kLanes];
  addresses[lane] = address;
  if (const Range* range = RangeOf(x.allocations, address))
    CheckGlobalRead(x, op, 1u << lane, addresses, bytes, *range, Layout::kApart);
}

/// True if the lane before, or the corresponding lane of the other half warp, reads the same
/// address: broadcasts are checked once.
bool ReadsAsBefore(const uint64_t* addresses, uint32_t mask, int lane) {
  const auto same = [&](int other) {
    return other >= 0 && ((mask >> other) & 1u) != 0 && addresses[other] == addresses[lane];
  };
  return same(lane - 1) || same(lane - kLanes / 2);
}

/// Checks a load whose host addresses are known.
void CheckLoad(BlockState& x, const Op& op, uint32_t mask, uint32_t bytes, const Warpwide& w) {
  if (w.space == Space::kLocal) {
    if (x.checks.memory)
      ForLanes(mask, [&](int l) { CheckLocalRead(x, op, l, w.HostBytes(w.own[l]), bytes); });
    return;
  }
  const bool shared = w.space == Space::kShared;
  if (shared && !x.checks.any) return;
  if (shared && bytes % 4 == 0 && !op.relaxed && AllOnlyRead(x, w, mask, bytes)) return;
  const bool dense = w.space == Space::kGlobal && w.layout == Layout::kDense;
  if (dense && x.checks.track_stores && ReadDenseQuietly(x, op, w.low + w.bias, bytes, *w.range))
    return;
  uint64_t room[kLanes];
  const uint64_t* addresses = w.Addresses(mask, room);
  if (w.space == Space::kGlobal && x.checks.track_stores)
    CheckGlobalRead(x, op, mask, addresses, bytes, *w.range, w.layout);
  if (!shared) return;
  const QuietAccess quiet(x, op, bytes);
  const uint32_t distinct = w.Distinct(mask);
  for (uint32_t m = distinct; m != 0 && !x.stop; m &= m - 1) {
    const int l = std::countr_zero(m);
    if (ReadsAsBefore(addresses, distinct, l)) continue;
    if (!quiet.Read(l, addresses[l])) ShadowRead(x, op, l, addresses[l], bytes);
  }
  if (op.is_volatile) CheckExchangedRead(x, op, mask, distinct, addresses);
}

/// Counts an access of which Warpwide says everything, or which was counted before.
bool CountKnown(BlockState& x, const Warpwide& w, uint32_t bytes, bool store) {
  if (w.space == Space::kGlobal && w.layout == Layout::kDense) {
    CountDense(x, w.low + w.bias, bytes, store);
    return true;
  }
  if (w.space != Space::kShared) return false;
  if (w.layout != Layout::kApart) {
    const uint32_t wavefronts = w.layout == Layout::kSame ? (bytes > 8 ? 2 : 1)
                                                          : std::max(1u, bytes / 4);
    if (w.known != nullptr) w.known->wavefronts = wavefronts;
    CountWavefronts(x, wavefronts);
    return true;
  }
  if (w.known == nullptr || w.known->wavefronts == 0) return false;
  CountWavefronts(x, w.known->wavefronts);
  return true;
}

void CountWarp(BlockState& x, const Warpwide& w, uint32_t mask, uint32_t bytes, bool store) {
  if (CountKnown(x, w, bytes, store)) return;
  uint64_t room[kLanes];
  CountAccess(x, w.Addresses(mask, room), mask, w.space, bytes, store);
  if (w.space == Space::kShared && w.known != nullptr)
    w.known->wavefronts = x.timing.touch.wavefronts;
}

// ---- lane by lane
/// Loads lane by lane: for lanes that differ in space or allocation, and to report invalid
/// accesses.
void LoadLanes(BlockState& x, const Op& op, uint32_t mask, uint32_t bytes) {
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
    if (space == Space::kShared && x.checks.any) ShadowRead(x, op, l, address, bytes);
    if (space == Space::kGlobal && x.checks.track_stores) CheckOneRead(x, op, l, address, bytes);
    if (space == Space::kLocal && x.checks.memory) CheckLocalRead(x, op, l, from, bytes);
    counted.Add(l, address, space);
    IsPublished(op) ? ReadPublished(x, op, l, from) : ReadConverted(x, op, l, from);
    if (op.order.polls && op.relaxed && global) ObserveFlag(x, address, bytes);
  }
  counted.Count(x, bytes, false);
}

void StoreLanes(BlockState& x, const Op& op, uint32_t mask, uint32_t bytes) {
  CountedLanes counted;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t address = AddressOf(x, op, l);
    const Space space = Resolve(op.space, address);
    if (!CheckAligned(x, op, l, address, bytes)) return;
    std::byte* to = space == Space::kGlobal
                        ? GlobalPointer(x, op, l, address, bytes, "store")
                        : WindowPointer(x, op, l, space, address, bytes, "store");
    if (to == nullptr) return;
    alignas(32) std::byte value[64];
    for (int i = 0; i < op.list_size; ++i) {
      const uint32_t* s = x.Source(ElementSlot(x, op, i));
      const uint64_t raw = op.width == 8 ? Lane<uint64_t>::Get(s, l)
                                         : s[l * (op.variant & 1 ? 2 : 1)];
      std::memcpy(value + i * op.width, &raw, op.width);
    }
    if (space == Space::kShared && x.checks.any) {
      const bool same_value = std::memcmp(to, value, bytes) == 0 && Initialised(x, address);
      ShadowWrite(x, op, l, address, bytes, same_value, false);
      CheckExchangedWrite(x, op, mask, l, address, same_value);
    }
    if (space == Space::kGlobal && op.relaxed && HasBlockFlags(x))
      ReleaseFlags(x, l, address, bytes);
    if (space == Space::kGlobal && x.checks.track_stores) {
      if (const Range* range = RangeOf(x.allocations, address))
        CheckGlobalWrite(x, op, l, address, bytes, *range, value, false);
    }
    if (space == Space::kGlobal && x.launch->options.log_writes)
      x.record.written.Add(address, address + bytes);
    if (space == Space::kLocal) MarkLocal(x.local, to, bytes);
    counted.Add(l, address, space);
    IsPublished(op) ? CopyWhole(to, value, bytes) : void(std::memcpy(to, value, bytes));
  }
  counted.Count(x, bytes, true);
}

/// Reads flags in global memory, and acquires what was released with them.
void PollWarp(BlockState& x, const Op& op, uint32_t mask, uint32_t bytes, const Warpwide& w) {
  uint64_t room[kLanes];
  const uint64_t* addresses = w.Addresses(mask, room);
  ReadWarp(x, op, mask, w);
  ForLanes(mask, [&](int l) { ObserveFlag(x, addresses[l], bytes); });
}

void Load(BlockState& x, const Op& op, uint32_t mask) {
  if (op.fence) OrderCluster(x);
  if (op.relaxed) {
    x.progress.polled = true;
    SeeAll(x);
    AcquireInCluster(x);
  }
  const uint32_t bytes = uint32_t{op.width} * op.list_size;
  Warpwide w;
  if (!Locate(x, op, mask, bytes, w)) return LoadLanes(x, op, mask, bytes);
  if (x.checks.any || x.checks.track_stores) CheckLoad(x, op, mask, bytes, w);
  // before the address registers may be overwritten
  if (x.counting.enabled) CountWarp(x, w, mask, bytes, false);
  if (op.order.polls && op.relaxed && w.space == Space::kGlobal)
    return PollWarp(x, op, mask, bytes, w);
  ReadWarp(x, op, mask, w);
}

/// AllOnlyRead for words at `imm` behind the addresses that a register is known to hold.
template <class Offset>
bool KnownOnlyRead(const BlockState& x, const KnownSpan& known, const uint32_t* offsets,
                   uint64_t imm) {
  const auto differs = [&](uint64_t offset) {
    return x.shadow.only_read_in[(offset + imm) / 4] ^ x.shadow.epoch;
  };
  uint32_t changes = differs(Lane<Offset>::Get(offsets, 0));
  if (changes != 0 || known.span.layout == Layout::kSame) return changes == 0;
  for (int l = known.run; l < known.period; l += known.run)
    changes |= differs(Lane<Offset>::Get(offsets, l));
  return changes == 0;
}

/// Fast path for reads behind known addresses that cannot be in conflict. False if each lane must
/// be checked. Apart from its caller, which has no checks to make otherwise.
template <class Offset>
[[gnu::noinline]] bool ReadKnownQuietly(BlockState& x, const Op& op, const KnownSpan& known,
                                        const uint32_t* offsets) {
  const QuietAccess quiet(x, op, sizeof(uint32_t));
  if (known.span.layout == Layout::kSame)
    return quiet.Read(0, Lane<Offset>::Get(offsets, 0) + op.imm);
  for (int l = 0; l < known.period; l += known.run) {
    if (!quiet.Read(l, Lane<Offset>::Get(offsets, l) + op.imm)) return false;
  }
  return true;
}

/// Fast path of loads: reads a word per lane if the span of the address register is known from an
/// earlier access and no check needs to look closer; else false.
template <class Offset>
bool ReadKnownWord(BlockState& x, const Op& op, uint32_t mask) {
  const int32_t slot = ElementSlot(x, op, 0);
  if (!op.address_known || mask != ~0u || slot == INT32_MIN) return false;
  const KnownSpan& known = x.spans.of_slot[static_cast<size_t>(op.src[0])];
  const auto low = known.span.low + static_cast<int64_t>(op.imm);
  const auto end = known.span.high + static_cast<int64_t>(op.imm) + 4;
  const bool inside = known.span.low >= 0 && low >= 0 && low < end &&
                      end <= static_cast<int64_t>(x.shared.bytes.size());
  if (known.basic_block != x.spans.basic_block || known.bytes != 4 || !inside ||
      ((known.span.bits | op.imm) & 3) != 0)
    return false;
  if (x.counting.enabled && known.wavefronts == 0) return false;
  const uint32_t* offsets = x.Source(op.src[0]);
  if (x.checks.any && !KnownOnlyRead<Offset>(x, known, offsets, op.imm) &&
      !ReadKnownQuietly<Offset>(x, op, known, offsets))
    return false;
  if (x.counting.enabled) CountWavefronts(x, known.wavefronts);
  uint32_t* to = x.Slot(slot);
  const auto word = [offsets, from = x.shared.bytes.data() + static_cast<int64_t>(op.imm)](int l) {
    uint32_t value;
    std::memcpy(&value, from + Lane<Offset>::Get(offsets, l), sizeof value);
    return value;
  };
  if (known.span.layout == Layout::kSame)
    std::fill_n(to, kLanes, word(0));
  else if (known.span.layout == Layout::kDense)
    std::memcpy(to, x.shared.bytes.data() + low, sizeof(uint32_t) * kLanes);
  else
    FillWords(to, known, word);
  return true;
}

/// Load of single words from shared memory, the most common of all.
template <class Offset>
void LoadWord(BlockState& x, const Op& op, uint32_t mask) {
  if (!ReadKnownWord<Offset>(x, op, mask)) Load(x, op, mask);
}

/// Enters the bytes of a store of all lanes in the log of writes.
void LogWrite(BlockState& x, const Warpwide& w, uint32_t mask, uint32_t bytes) {
  if (w.layout == Layout::kDense)
    return x.record.written.Add(w.low + w.bias, w.low + w.bias + uint64_t{bytes} * kLanes);
  uint64_t room[kLanes];
  const uint64_t* addresses = w.Addresses(mask, room);
  ForLanes(mask, [&](int l) { x.record.written.Add(addresses[l], addresses[l] + bytes); });
}

void Store(BlockState& x, const Op& op, uint32_t mask) {
  if (op.fence) {
    NoteFence(x, mask, op.order.of_block);
    OrderCluster(x);
  } else if (op.relaxed) {
    PropagateToCluster(x);
  }
  const uint32_t bytes = uint32_t{op.width} * op.list_size;
  Warpwide w;
  const bool writable = op.space != Space::kConst && op.space != Space::kParam;
  if (!writable || IsPublished(op) || !Locate(x, op, mask, bytes, w) || w.space == Space::kParam)
    return StoreLanes(x, op, mask, bytes);
  if (w.space == Space::kGlobal && op.relaxed && HasBlockFlags(x))
    return StoreLanes(x, op, mask, bytes);
  uint64_t room[kLanes];
  const uint64_t* addresses = x.checks.any || x.checks.track_stores ? w.Addresses(mask, room)
                                                                    : nullptr;
  if (w.space == Space::kShared && x.checks.any) {
    // A word that this epoch has seen already may be in conflict: then the values decide, lane by
    // lane.
    const QuietAccess quiet(x, op, bytes);
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (!quiet.Write(l, addresses[l])) return StoreLanes(x, op, mask, bytes);
    }
  }
  if (w.space == Space::kGlobal && x.checks.track_stores) {
    if (!StoreDense(x, op, mask, addresses, bytes, *w.range, w.layout) &&
        !StoreApart(x, op, mask, addresses, bytes, *w.range))
      return StoreLanes(x, op, mask, bytes);
  } else {
    if (w.space == Space::kLocal && x.checks.memory)
      ForLanes(mask, [&](int l) { MarkLocal(x.local, w.HostBytes(w.own[l]), bytes); });
    WriteWarp(x, op, mask, w);
  }
  if (w.space == Space::kGlobal && x.launch->options.log_writes) LogWrite(x, w, mask, bytes);
  if (x.counting.enabled) CountWarp(x, w, mask, bytes, true);
}

void NoEffect(BlockState&, const Op&, uint32_t) {}

}  // namespace

bool IsAccess(const Op& op) {
  return op.run == Load || op.run == LoadWord<uint32_t> || op.run == LoadWord<uint64_t> ||
         op.run == Store;
}

Handler MemoryHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  const bool word = op.space == Space::kShared && op.src[0] >= 0 && op.width == 4 &&
                    op.list_size == 1 && (op.variant & 1) == 0 && !op.relaxed && !op.fence;
  if (opcode == "ld" || opcode == "ldu") {
    if (word) return op.narrow_address ? LoadWord<uint32_t> : LoadWord<uint64_t>;
    return Load;
  }
  if (opcode == "st") return Store;
  return NoEffect;  // prefetch, prefetchu, discard, applypriority: hints
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
