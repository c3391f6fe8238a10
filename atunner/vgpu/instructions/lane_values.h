// The values of loads and stores between the lanes' registers and memory: one lane's, or those of
// all lanes at once.
#pragma once

#include <algorithm>

#include "atunner/vgpu/instructions/warpwide.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

inline void StoreRegister(uint32_t* slot, int lane, uint64_t raw, const Op& op, bool wide) {
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
inline int32_t ElementSlot(const BlockState& x, const Op& op, int i) {
  return x.kernel->lists[static_cast<size_t>(op.list) + static_cast<size_t>(i)];
}

inline void ReadConverted(BlockState& x, const Op& op, int lane, const std::byte* from) {
  for (int i = 0; i < op.list_size; ++i) {
    const int32_t slot = ElementSlot(x, op, i);
    if (slot == INT32_MIN) continue;  // the sink `_`
    uint64_t raw = 0;
    std::memcpy(&raw, from + i * op.width, op.width);
    StoreRegister(x.Slot(slot), lane, raw, op, op.variant & 1);
  }
}

/// Blocks of other threads see a vector that is published to them as a whole or not at all, as they
/// do on hardware: look-back scans keep a value and its state side by side and read both at once.
inline bool IsPublished(const Op& op) { return op.relaxed && op.list_size > 1; }

/// In one access of the host, which is one for others too where its place is aligned.
inline void CopyWhole(std::byte* to, const std::byte* from, uint32_t bytes) {
  using Whole [[gnu::vector_size(16), gnu::may_alias]] = uint64_t;
  using Half [[gnu::may_alias]] = uint64_t;
  if (bytes == 16)
    *reinterpret_cast<volatile Whole*>(to) = *reinterpret_cast<const volatile Whole*>(from);
  else if (bytes == 8)
    *reinterpret_cast<volatile Half*>(to) = *reinterpret_cast<const volatile Half*>(from);
  else
    std::memcpy(to, from, bytes);
}

inline void ReadPublished(BlockState& x, const Op& op, int lane, const std::byte* from) {
  alignas(32) std::byte value[64];
  CopyWhole(value, from, uint32_t{op.width} * op.list_size);
  ReadConverted(x, op, lane, value);
}

// ---- all lanes at once
template <class T>
void ReadLanes(uint32_t* to, uint32_t mask, int element, const Warpwide& w, bool wide) {
  w.WithPlaces([&](auto place) {
    const auto read = [&](int l) {
      T value;
      std::memcpy(&value, place(l) + element * static_cast<int>(sizeof(T)), sizeof value);
      return value;
    };
    if (wide)
      ForLanes(mask, [&](int l) {
        Lane<uint64_t>::Set(to, l, static_cast<uint64_t>(static_cast<int64_t>(read(l))));
      });
    else
      ForLanes(mask, [&](int l) { to[l] = static_cast<uint32_t>(read(l)); });
  });
}

/// One element of each lane, where it has to be extended.
inline void ReadExtended(uint32_t* to, uint32_t mask, int element, const Warpwide& w, const Op& op,
                         bool wide) {
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

/// Reads one element for all lanes, whose addresses are consecutive or equal.
template <class T>
void ReadRegular(uint32_t* to, int element, int elements, const Warpwide& w) {
  const std::byte* from = w.HostBytes(w.low) + element * static_cast<int>(sizeof(T));
  if (w.layout == Layout::kSame) {
    T value;
    std::memcpy(&value, from, sizeof value);
    for (int l = 0; l < kLanes; ++l) Lane<T>::Set(to, l, value);
  } else if (elements == 1) {
    std::memcpy(to, from, sizeof(T) * kLanes);
  } else {
    for (int l = 0; l < kLanes; ++l)
      std::memcpy(to + l * static_cast<int>(sizeof(T) / 4),
                  from + l * elements * static_cast<int>(sizeof(T)), sizeof(T));
  }
}

using Quad [[gnu::vector_size(16)]] = uint32_t;

inline Quad QuadAt(const std::byte* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof quad);
  return quad;
}

/// The first element of four places, then the second ones, …
inline std::array<Quad, 4> Transposed(Quad a, Quad b, Quad c, Quad d) {
  const Quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return {__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
          __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5),
          __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
}

inline std::array<Quad, 4> Repeated(Quad a) {
  return {__builtin_shufflevector(a, a, 0, 0, 0, 0), __builtin_shufflevector(a, a, 1, 1, 1, 1),
          __builtin_shufflevector(a, a, 2, 2, 2, 2), __builtin_shufflevector(a, a, 3, 3, 3, 3)};
}

/// Loads for 32 lanes of which those from `period` on repeat the first ones, and `run` neighbours
/// are equal; both are powers of two. Calls write(lane, quad) for every fourth lane. four(lane)
/// gives the values of four different lanes, one(lane) that of four equal lanes.
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
inline constexpr KnownSpan kNoRepeats;

/// False where it is no access of all lanes to four words each.
inline bool ReadFourWords(BlockState& x, const Op& op, uint32_t mask, const Warpwide& w) {
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
      return Transposed(QuadAt(place(l)), QuadAt(place(l + 1)), QuadAt(place(l + 2)),
                        QuadAt(place(l + 3)));
    };
    ForQuads(known, one, four, write);
  };
  if (w.layout == Layout::kApart) {
    w.WithPlaces([&](auto place) { read(place, w.known ? *w.known : kNoRepeats); });
  } else {
    KnownSpan known;
    if (w.layout == Layout::kSame) known.run = kLanes;
    read([from = w.HostBytes(w.low),
          step = w.layout == Layout::kDense ? 16 : 0](int l) { return from + l * step; },
         known);
  }
  return true;
}

/// word(lane) for all lanes.
template <class Word>
void FillWords(uint32_t* to, const KnownSpan& known, Word&& word) {
  ForQuads(
      known, [&](int l) { return Quad{} + word(l); },
      [&](int l) { return Quad{word(l), word(l + 1), word(l + 2), word(l + 3)}; },
      [&](int l, const Quad& quad) { std::memcpy(to + l, &quad, sizeof quad); });
}

/// The most common of all irregular reads.
inline void ReadWords(uint32_t* to, uint32_t mask, int element, const Warpwide& w) {
  w.WithPlaces([&](auto place) {
    const auto word = [&](int l) {
      uint32_t value;
      std::memcpy(&value, place(l) + element * 4, 4);
      return value;
    };
    if (mask != ~0u) return ForLanes(mask, [&](int l) { to[l] = word(l); });
    FillWords(to, w.known ? *w.known : kNoRepeats, word);
  });
}

inline void ReadWarp(BlockState& x, const Op& op, uint32_t mask, const Warpwide& w) {
  if (IsPublished(op)) {
    w.WithPlaces(
        [&](auto place) { ForLanes(mask, [&](int l) { ReadPublished(x, op, l, place(l)); }); });
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
        w.WithPlaces([&](auto place) {
          ForLanes(mask, [&](int l) { std::memcpy(d + 2 * l, place(l) + i * 8, 8); });
        });
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

inline void WriteWarp(BlockState& x, const Op& op, uint32_t mask, const Warpwide& w) {
  if (w.layout == Layout::kDense && op.list_size == 1 &&
      (op.width == 8 || (op.width == 4 && !(op.variant & 1)))) {
    std::memcpy(w.HostBytes(w.low), x.Source(ElementSlot(x, op, 0)), size_t{op.width} * kLanes);
    return;
  }
  // Lane by lane: of several that write the same place, the last one stays whole.
  if (op.list_size == 4 && op.width == 4 && !(op.variant & 1) && mask == ~0u) {
    std::array<const uint32_t*, 4> from{};
    for (int i = 0; i < 4; ++i) from[static_cast<size_t>(i)] = x.Source(ElementSlot(x, op, i));
    const auto four = [&](size_t i, int l) {
      return QuadAt(reinterpret_cast<const std::byte*>(from[i] + l));
    };
    w.WithPlaces([&](auto place) {
      for (int l = 0; l < kLanes; l += 4) {
        const std::array<Quad, 4> quads = Transposed(four(0, l), four(1, l), four(2, l),
                                                     four(3, l));
        for (int i = 0; i < 4; ++i)
          std::memcpy(place(l + i), &quads[static_cast<size_t>(i)], sizeof(Quad));
      }
    });
    return;
  }
  if (op.list_size == 1 && op.width == 4 && !(op.variant & 1)) {
    const uint32_t* from = x.Source(ElementSlot(x, op, 0));
    w.WithPlaces(
        [&](auto place) { ForLanes(mask, [&](int l) { std::memcpy(place(l), from + l, 4); }); });
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

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
