// Loads and stores.
#include <algorithm>

#include "atunner/vgpu/pending.h"
#include "atunner/vgpu/warpwide.h"

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

/// Blocks of other threads see a vector that is published to them as a whole or not at all, as they do on hardware:
/// look-back scans keep a value and its state side by side and read both at once.
bool IsPublished(const Op& op) { return op.relaxed && op.list_size > 1; }

/// In one access of the host, which is one for others too where its place is aligned.
void CopyWhole(std::byte* to, const std::byte* from, uint32_t bytes) {
  using Whole [[gnu::vector_size(16), gnu::may_alias]] = uint64_t;
  using Half [[gnu::may_alias]] = uint64_t;
  if (bytes == 16)
    *reinterpret_cast<volatile Whole*>(to) = *reinterpret_cast<const volatile Whole*>(from);
  else if (bytes == 8)
    *reinterpret_cast<volatile Half*>(to) = *reinterpret_cast<const volatile Half*>(from);
  else
    std::memcpy(to, from, bytes);
}

void ReadPublished(Exec& x, const Op& op, int lane, const std::byte* from) {
  alignas(32) std::byte value[64];
  CopyWhole(value, from, uint32_t{op.width} * op.list_size);
  ReadConverted(x, op, lane, value);
}

// ---- all lanes at once
// -----------------------------------------------------------------------------------------------
template <class T>
void ReadLanes(uint32_t* to, uint32_t mask, int element, const Warpwide& w, bool wide) {
  w.WithPlaces([&](auto place) {
    const auto read = [&](int l) {
      T value;
      std::memcpy(&value, place(l) + element * static_cast<int>(sizeof(T)), sizeof value);
      return value;
    };
    if (wide)
      ForLanes(mask, [&](int l) { Lane<uint64_t>::Set(to, l, static_cast<uint64_t>(static_cast<int64_t>(read(l)))); });
    else
      ForLanes(mask, [&](int l) { to[l] = static_cast<uint32_t>(read(l)); });
  });
}

/// One element of each lane, where it has to be extended.
void ReadExtended(uint32_t* to, uint32_t mask, int element, const Warpwide& w, const Op& op, bool wide) {
  switch (op.width) {
    case 1:
      return op.sign_extend ? ReadLanes<int8_t>(to, mask, element, w, wide)
                            : ReadLanes<uint8_t>(to, mask, element, w, wide);
    case 2:
      return op.sign_extend ? ReadLanes<int16_t>(to, mask, element, w, wide)
                            : ReadLanes<uint16_t>(to, mask, element, w, wide);
    default:
      return op.sign_extend ? ReadLanes<int32_t>(to, mask, element, w, wide)
                            : ReadLanes<uint32_t>(to, mask, element, w, wide);
  }
}

/// One element of all lanes, which lie side by side or at the same place.
template <class T>
void ReadRegular(uint32_t* to, int element, int elements, const Warpwide& w) {
  const std::byte* from = w.Place(w.low) + element * static_cast<int>(sizeof(T));
  if (w.layout == Layout::kSame) {
    T value;
    std::memcpy(&value, from, sizeof value);
    for (int l = 0; l < kLanes; ++l) Lane<T>::Set(to, l, value);
  } else if (elements == 1) {
    std::memcpy(to, from, sizeof(T) * kLanes);
  } else {
    for (int l = 0; l < kLanes; ++l)
      std::memcpy(to + l * static_cast<int>(sizeof(T) / 4), from + l * elements * static_cast<int>(sizeof(T)),
                  sizeof(T));
  }
}

using Quad [[gnu::vector_size(16)]] = uint32_t;

Quad QuadAt(const std::byte* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof quad);
  return quad;
}

/// The first element of four places, then the second ones, …
std::array<Quad, 4> Transposed(Quad a, Quad b, Quad c, Quad d) {
  const Quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return {__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
          __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5), __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
}

std::array<Quad, 4> Repeated(Quad a) {
  return {__builtin_shufflevector(a, a, 0, 0, 0, 0), __builtin_shufflevector(a, a, 1, 1, 1, 1),
          __builtin_shufflevector(a, a, 2, 2, 2, 2), __builtin_shufflevector(a, a, 3, 3, 3, 3)};
}

/// Of 32 lanes, those from `period` on repeat the first ones, and `run` neighbours are alike; powers of two. Calls
/// write(lane, quad) for every fourth lane, where four(lane) gives what lies there and one(lane) the same of equal
/// lanes.
template <int kPeriod, class Four, class Write>
void ForQuads(Four&& four, Write&& write) {
  for (int l = 0; l < kPeriod; l += 4) {
    const auto quads = four(l);
    for (int copy = l; copy < kLanes; copy += kPeriod) write(copy, quads);
  }
}
template <class One, class Four, class Write>
void ForQuads(const KnownSpan& known, One&& one, Four&& four, Write&& write) {
  if (known.run >= 4) {
    for (int first = 0; first < known.period; first += known.run) {
      const auto quads = one(first);
      for (int copy = first; copy < kLanes; copy += known.period) {
        for (int l = copy; l < copy + known.run; l += 4) write(l, quads);
      }
    }
  } else if (known.period == kLanes) {
    ForQuads<kLanes>(four, write);
  } else if (known.period == 16) {
    ForQuads<16>(four, write);
  } else {
    ForQuads<8>(four, write);
  }
}
constexpr KnownSpan kNoRepeats;

/// False where it is no access of all lanes to four words each.
bool ReadFourWords(Exec& x, const Op& op, uint32_t mask, const Warpwide& w) {
  if (op.list_size != 4 || op.width != 4 || (op.variant & 1) || mask != ~0u) return false;
  std::array<uint32_t*, 4> to{};
  for (int i = 0; i < 4; ++i) {
    const int32_t slot = ElementSlot(x, op, i);
    if (slot == INT32_MIN) return false;
    to[static_cast<size_t>(i)] = x.Slot(slot);
  }
  const auto write = [&](int l, const std::array<Quad, 4>& quads) {
    for (size_t i = 0; i < 4; ++i) std::memcpy(to[i] + l, &quads[i], sizeof(Quad));
  };
  const auto read = [&](auto place, const KnownSpan& known) {
    const auto one = [&](int l) { return Repeated(QuadAt(place(l))); };
    const auto four = [&](int l) {
      return Transposed(QuadAt(place(l)), QuadAt(place(l + 1)), QuadAt(place(l + 2)), QuadAt(place(l + 3)));
    };
    ForQuads(known, one, four, write);
  };
  if (w.layout == Layout::kApart) {
    w.WithPlaces([&](auto place) { read(place, w.known ? *w.known : kNoRepeats); });
  } else {
    KnownSpan known;
    if (w.layout == Layout::kSame) known.run = kLanes;
    read([from = w.Place(w.low), step = w.layout == Layout::kDense ? 16 : 0](int l) { return from + l * step; }, known);
  }
  return true;
}

/// The most common of all irregular reads.
void ReadWords(uint32_t* to, uint32_t mask, int element, const Warpwide& w) {
  w.WithPlaces([&](auto place) {
    const auto word = [&](int l) {
      uint32_t value;
      std::memcpy(&value, place(l) + element * 4, 4);
      return value;
    };
    if (mask != ~0u) return ForLanes(mask, [&](int l) { to[l] = word(l); });
    ForQuads(
        w.known ? *w.known : kNoRepeats, [&](int l) { return Quad{} + word(l); },
        [&](int l) { return Quad{word(l), word(l + 1), word(l + 2), word(l + 3)}; },
        [&](int l, const Quad& quad) { std::memcpy(to + l, &quad, sizeof quad); });
  });
}

void ReadWarp(Exec& x, const Op& op, uint32_t mask, const Warpwide& w) {
  if (IsPublished(op)) {
    w.WithPlaces([&](auto place) { ForLanes(mask, [&](int l) { ReadPublished(x, op, l, place(l)); }); });
    return;
  }
  if (ReadFourWords(x, op, mask, w)) return;
  const bool wide = op.variant & 1;
  for (int i = 0; i < op.list_size; ++i) {
    const int32_t slot = ElementSlot(x, op, i);
    if (slot == INT32_MIN) continue;
    uint32_t* d = x.Slot(slot);
    if (op.width == 8) {
      if (w.layout != Layout::kApart)
        ReadRegular<uint64_t>(d, i, op.list_size, w);
      else
        w.WithPlaces([&](auto place) { ForLanes(mask, [&](int l) { std::memcpy(d + 2 * l, place(l) + i * 8, 8); }); });
    } else if (op.width == 4 && !wide) {
      if (w.layout != Layout::kApart)
        ReadRegular<uint32_t>(d, i, op.list_size, w);
      else
        ReadWords(d, mask, i, w);
    } else {
      ReadExtended(d, mask, i, w, op, wide);
    }
  }
}

void WriteWarp(Exec& x, const Op& op, uint32_t mask, const Warpwide& w) {
  if (w.layout == Layout::kDense && op.list_size == 1 && (op.width == 8 || (op.width == 4 && !(op.variant & 1)))) {
    std::memcpy(w.Place(w.low), x.Source(ElementSlot(x, op, 0)), size_t{op.width} * kLanes);
    return;
  }
  // Lane by lane: of several that write the same place, the last one stays whole.
  if (op.list_size == 4 && op.width == 4 && !(op.variant & 1) && mask == ~0u) {
    std::array<const uint32_t*, 4> from{};
    for (int i = 0; i < 4; ++i) from[static_cast<size_t>(i)] = x.Source(ElementSlot(x, op, i));
    const auto four = [&](size_t i, int l) { return QuadAt(reinterpret_cast<const std::byte*>(from[i] + l)); };
    w.WithPlaces([&](auto place) {
      for (int l = 0; l < kLanes; l += 4) {
        const std::array<Quad, 4> quads = Transposed(four(0, l), four(1, l), four(2, l), four(3, l));
        for (int i = 0; i < 4; ++i) std::memcpy(place(l + i), &quads[static_cast<size_t>(i)], sizeof(Quad));
      }
    });
    return;
  }
  w.WithPlaces([&](auto place) {
    ForLanes(mask, [&](int l) {
      std::byte* to = place(l);
      for (int i = 0; i < op.list_size; ++i) {
        const uint32_t* s = x.Source(ElementSlot(x, op, i));
        if (op.width == 4)
          std::memcpy(to + i * 4, s + l * (op.variant & 1 ? 2 : 1), 4);
        else if (op.width == 8)
          std::memcpy(to + i * 8, s + l * 2, 8);
        else
          std::memcpy(to + i * op.width, s + l * (op.variant & 1 ? 2 : 1), op.width);
      }
    });
  });
}

// ---- checks and counts ----------------------------------------------------------------------------------------------
/// Whether one more read is no news to any word of a shared access: Exec::calm.
bool AllCalm(const Exec& x, const Warpwide& w, uint32_t mask, uint32_t bytes) {
  const uint32_t words = bytes / 4;
  const uint32_t* calm = x.calm.data();
  uint32_t news = 0;
  if (w.layout != Layout::kApart) {
    const uint32_t* first = calm + (w.low + w.bias) / 4;
    const uint32_t all = w.layout == Layout::kSame ? words : words * kLanes;
    for (uint32_t i = 0; i < all; ++i) news |= first[i] ^ x.epoch;
    return news == 0;
  }
  w.WithPlaces([&](auto place) {
    const auto word = [&](int l) { return calm + static_cast<size_t>(place(l) - x.shared.data()) / 4; };
    news = *word(std::countr_zero(mask)) ^ x.epoch;
    if (news != 0) return;
    const uint32_t distinct = w.Distinct(mask);
    if (words == 1) return ForLanes(distinct, [&](int l) { news |= *word(l) ^ x.epoch; });
    ForLanes(distinct, [&](int l) {
      const uint32_t* first = word(l);
      for (uint32_t i = 0; i < words; ++i) news |= first[i] ^ x.epoch;
    });
  });
  return news == 0;
}

/// The common case of the shadow: nothing but earlier epochs in the words. False = look closer, from this lane on.
bool QuietRead(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  if (bytes % 4 != 0 || op.relaxed) return false;
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  SharedShadow* const first = &x.shadow[address / 4];
  for (SharedShadow* s = first; s < first + bytes / 4; ++s) {
    if (s->initialised != 0xf || s->in_flight) return false;
    if (s->writer == kBulkParty ? x.warp->seen_epoch < s->write_epoch : s->write_epoch == x.epoch) return false;
    NoteReader(x, static_cast<uint64_t>(s - x.shadow.data()), thread, LineOf(x, op));
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
    s->write_line = LineOf(x, op);
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
bool ReadsAsBefore(const uint64_t* addresses, uint32_t mask, int lane) {
  const auto same = [&](int other) {
    return other >= 0 && ((mask >> other) & 1u) != 0 && addresses[other] == addresses[lane];
  };
  return same(lane - 1) || same(lane - kLanes / 2);
}

/// What the checks want to know of a load whose place is known.
void CheckLoad(Exec& x, const Op& op, uint32_t mask, uint32_t bytes, const Warpwide& w) {
  if (w.space == Space::kLocal) {
    if (x.check_global) ForLanes(mask, [&](int l) { CheckLocalRead(x, op, l, w.Place(w.own[l]), bytes); });
    return;
  }
  const bool shared = w.space == Space::kShared;
  if (shared && !x.check) return;
  if (shared && bytes % 4 == 0 && !op.relaxed && AllCalm(x, w, mask, bytes)) return;
  uint64_t room[kLanes];
  const uint64_t* addresses = w.Addresses(mask, room);
  if (w.space == Space::kGlobal && x.track) CheckGlobalRead(x, op, mask, addresses, bytes, *w.range);
  const uint32_t distinct = shared ? w.Distinct(mask) : 0;
  for (uint32_t m = distinct; m != 0 && !x.stop; m &= m - 1) {
    const int l = std::countr_zero(m);
    if (ReadsAsBefore(addresses, distinct, l)) continue;
    if (!QuietRead(x, op, l, addresses[l], bytes)) ShadowRead(x, op, l, addresses[l], bytes);
  }
}

/// Counts an access of which Warpwide says everything, or which was counted before.
bool CountKnown(Exec& x, const Warpwide& w, uint32_t bytes, bool store) {
  if (w.space == Space::kGlobal && w.layout == Layout::kDense) {
    CountDense(x, w.low + w.bias, bytes, store);
    return true;
  }
  if (w.space != Space::kShared || w.known == nullptr || w.known->wavefronts == 0) return false;
  CountWavefronts(x, w.known->wavefronts);
  return true;
}

void CountWarp(Exec& x, const Warpwide& w, uint32_t mask, uint32_t bytes, bool store) {
  if (CountKnown(x, w, bytes, store)) return;
  uint64_t room[kLanes];
  CountAccess(x, w.Addresses(mask, room), mask, w.space, bytes, store);
  if (w.space == Space::kShared && w.known != nullptr) w.known->wavefronts = x.touch.wavefronts;
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
    IsPublished(op) ? ReadPublished(x, op, l, from) : ReadConverted(x, op, l, from);
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
    alignas(32) std::byte value[64];
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
    IsPublished(op) ? CopyWhole(to, value, bytes) : void(std::memcpy(to, value, bytes));
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
  if (x.check || x.track) CheckLoad(x, op, mask, bytes, w);
  if (x.count) CountWarp(x, w, mask, bytes, false);  // before the address registers may be overwritten
  ReadWarp(x, op, mask, w);
  if (op.relaxed) Acquire(x);
}

void Store(Exec& x, const Op& op, uint32_t mask) {
  if (op.fence) OrderAll(x);
  const uint32_t bytes = uint32_t{op.width} * op.list_size;
  Warpwide w;
  const bool writable = op.space != Space::kConst && op.space != Space::kParam;
  if (!writable || IsPublished(op) || !Locate(x, op, mask, bytes, w) || w.space == Space::kParam)
    return StoreLanes(x, op, mask, bytes);
  uint64_t room[kLanes];
  const uint64_t* addresses = x.check || x.track ? w.Addresses(mask, room) : nullptr;
  if (w.space == Space::kShared && x.check) {
    // A word that this epoch has seen already may be in conflict: then the values decide, lane by lane.
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (!QuietWrite(x, op, l, addresses[l], bytes)) return StoreLanes(x, op, mask, bytes);
    }
  }
  if (w.space == Space::kGlobal && x.track) {
    if (!StoreDense(x, op, mask, addresses, bytes, *w.range)) return StoreLanes(x, op, mask, bytes);
  } else {
    if (w.space == Space::kLocal && x.check_global)
      ForLanes(mask, [&](int l) { MarkLocal(x, w.Place(w.own[l]), bytes); });
    WriteWarp(x, op, mask, w);
  }
  if (x.count) CountWarp(x, w, mask, bytes, true);
}

void NoEffect(Exec&, const Op&, uint32_t) {}

}  // namespace

bool IsAccess(const Op& op) { return op.run == Load || op.run == Store; }

Handler MemoryHandler(const Form& form, Op&) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "ld" || opcode == "ldu") return Load;
  if (opcode == "st") return Store;
  return NoEffect;  // prefetch, prefetchu, discard, applypriority: hints
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
