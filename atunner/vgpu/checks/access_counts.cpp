// Counts the cost of accesses: sectors and lines of global memory, wavefronts of shared memory.
#include <algorithm>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/bank_conflicts.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// Cycles of the load/store unit for an access: `wavefronts`, and `late` more for data that is not
/// yet in L1.
struct UnitCycles {
  uint32_t wavefronts = 0, late = 0;
};

/// Addresses of the lanes of one access to global memory.
class LaneAddresses {
 public:
  LaneAddresses(const uint64_t* addresses, uint32_t mask, uint32_t bytes)
      : addresses_(addresses), mask_(mask), bytes_(bytes) {
    if (mask == ~0u) {
      steps_[0] = 0;
      for (size_t l = 1; l < kLanes; ++l) steps_[l] = addresses[l] ^ addresses[l - 1];
    } else {
      steps_ = {};
      uint64_t last = addresses[std::countr_zero(mask)];
      ForLanes(mask, [&](int l) {
        steps_[static_cast<size_t>(l)] = addresses[l] ^ last;
        last = addresses[l];
      });
    }
  }

  /// Writes the distinct sectors in order; returns their number.
  size_t Sectors(std::array<uint64_t, size_t{2} * kLanes>& sectors) const {
    size_t n = 0;
    bool rising = true;
    for (uint32_t m = CrossSectors() ? mask_ : Changes(~uint64_t{31}); m != 0; m &= m - 1) {
      const uint64_t address = addresses_[std::countr_zero(m)];
      for (uint64_t s = address / 32; s <= (address + bytes_ - 1) / 32; ++s) {
        rising &= n == 0 || s > sectors[n - 1];
        sectors[n++] = s;
      }
    }
    if (rising) return n;
    const auto end = sectors.begin() + static_cast<ptrdiff_t>(n);
    std::sort(sectors.begin(), end);
    return static_cast<size_t>(std::unique(sectors.begin(), end) - sectors.begin());
  }

  /// Cycles of the load/store unit. It processes lanes with 128 bytes in total at once, looks up
  /// four cache lines per clock, and each bank of L1 delivers one word. Data that is not in L1
  /// takes a cycle per line.
  UnitCycles Wavefronts() const {
    const uint32_t together = bytes_ <= 4 ? kLanes : std::max(1u, 128 / bytes_);
    const uint32_t changes = Changes(~uint64_t{127});
    UnitCycles turns;
    for (uint32_t first = 0; first < kLanes; first += together) {
      const uint32_t group = mask_ &
                             static_cast<uint32_t>(((uint64_t{1} << together) - 1) << first);
      if (group == 0) continue;
      const uint32_t lines = Lines(group, changes);
      const uint32_t found = (lines + kLinesPerClk - 1) / kLinesPerClk;
      const uint32_t wavefronts = lines == 1
                                      ? 1
                                      : std::max(found, Conflicts(addresses_, group, bytes_));
      turns.wavefronts += wavefronts;
      turns.late += std::max(lines, wavefronts) - wavefronts;
    }
    return turns;
  }

 private:
  static constexpr uint32_t kLinesPerClk = 4;

  /// Number of cache lines of a group of lanes. `changes`: lanes whose line differs from that of
  /// the lane before.
  uint32_t Lines(uint32_t group, uint32_t changes) const {
    std::array<uint64_t, kLanes> seen;
    auto end = seen.begin();
    uint64_t highest = 0;
    for (uint32_t m = group & (changes | -group); m != 0; m &= m - 1) {
      const uint64_t line = addresses_[std::countr_zero(m)] / 128;
      if (line <= highest && std::find(seen.begin(), end, line) != end) continue;
      highest = std::max(highest, line);
      *end++ = line;
    }
    return static_cast<uint32_t>(end - seen.begin());
  }
  /// True if a lane's access may span two sectors; aligned accesses do not.
  bool CrossSectors() const {
    uint64_t bits = 0;
    ForLanes(mask_, [&](int l) { bits |= addresses_[l]; });
    return !std::has_single_bit(bytes_) || bytes_ > 32 || (bits & (bytes_ - 1)) != 0;
  }
  /// Active lanes whose address differs in the bits of `which` from that of the active lane before,
  /// and the first active lane.
  uint32_t Changes(uint64_t which) const {
    using Four [[gnu::vector_size(
        32)]] = uint64_t;  // left alone, the loop becomes comparisons that vectors do not have
    Four bits{};
    Four bit = {1, 2, 4, 8};
    for (size_t l = 0; l < kLanes; l += 4, bit <<= 4) {
      Four step;
      std::memcpy(&step, &steps_[l], sizeof step);
      bits |= reinterpret_cast<Four>((step & which) != 0) & bit;
    }
    return (mask_ & -mask_) | static_cast<uint32_t>(bits[0] | bits[1] | bits[2] | bits[3]);
  }

  const uint64_t* addresses_;
  uint32_t mask_;
  uint32_t bytes_;
  /// Bits in which a lane's address differs from that of the active lane before
  std::array<uint64_t, kLanes> steps_;
};

struct GlobalAccess {
  uint64_t lanes = 0;
  uint32_t bytes = 0;  ///< of a lane
  uint64_t sectors = 0;
  UnitCycles turns;
};
/// True if sectors that miss L1 are in L2, because DRAM delivers two sectors at a time and the
/// block has read the other one. Only for small accesses; wide ones load both sectors themselves.
template <class F>
bool IsBrought(const SectorTable& known, uint64_t sectors, F&& sector) {
  constexpr uint64_t kFew = 4;
  if (sectors > kFew) return false;
  for (uint64_t i = 0; i < sectors; ++i) {
    const uint64_t number = sector(i), pair = number % 4 / 2;
    if ((known.SectorsOf(number / 4) >> (2 * pair) & 3u) == 0) return false;
  }
  return true;
}

/// Counts an access to sector(0) … sector(access.sectors - 1). `past_l1`: the access bypasses L1.
template <class F>
SectorTable::Met CountAccess(BlockState& x, const GlobalAccess& access, bool store, bool past_l1,
                             F&& sector) {
  Counts& counts = x.counting.total;
  const bool streams = !store && x.timing.enabled && x.kernel->tracks[x.timing.op].streams;
  const uint64_t kept = streams ? SectorTable::kShortly : x.launch->l1_sectors;
  const bool brought = x.timing.enabled && !store &&
                       IsBrought(x.counting.load_sectors, access.sectors, sector);
  const SectorTable::Met met = (store ? x.counting.store_sectors : x.counting.load_sectors)
                                   .Touch(access.sectors, kept, sector);
  const bool found = !store && !past_l1 && !streams && met.fresh == 0 && met.lost == 0;
  const uint32_t wavefronts = access.turns.wavefronts + (found ? 0 : access.turns.late);
  counts.global.wavefronts += wavefronts;
  counts.global.late_wavefronts += found ? access.turns.late : 0;
  if (store) {
    x.counting.load_sectors.Pass(access.sectors);  // L1 keeps them too
    counts.global.stores += 1;
    counts.global.store_sectors += access.sectors;
    counts.global.store_bytes += access.lanes * access.bytes;
  } else {
    counts.global.loads += 1;
    counts.global.load_sectors += access.sectors;
    counts.global.load_bytes += access.lanes * access.bytes;
    const uint64_t gone = streams ? met.lost : 0;
    counts.global.reread_sectors += gone;
    (past_l1 ? counts.global.reread_sectors : counts.global.l1_hit_sectors) += access.sectors -
                                                                               met.fresh - gone;
    if (!past_l1 && !streams) counts.global.reuse_distance += met.distance;
  }
  using Level = Touch::Level;
  const Level near = past_l1 || (!store && met.lost > 0) ? Level::kL2 : Level::kL1;
  x.timing.touch = {met.fresh == 0 ? near : brought ? Level::kL2 : Level::kMiss, wavefronts};
  return met;
}

/// The access of the lanes of `mask`.
struct CountedLanes {
  GlobalAccess access;
  SectorTable::Met met;
};
CountedLanes CountLanes(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes,
                        bool store, bool past_l1) {
  const LaneAddresses lanes(addresses, mask, bytes);
  std::array<uint64_t, size_t{2} * kLanes> sectors;
  const GlobalAccess access{static_cast<uint64_t>(std::popcount(mask)), bytes,
                            lanes.Sectors(sectors), lanes.Wavefronts()};
  return {access, CountAccess(x, access, store, past_l1, [&](size_t i) { return sectors[i]; })};
}

}  // namespace

// ---- counting
void CountGlobal(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes,
                 bool store) {
  CountLanes(x, addresses, mask, bytes, store, false);
}

void CountAtomic(BlockState& x, const uint64_t* addresses, uint32_t mask, bool floats) {
  constexpr double kFloatPasses = 2.38;  // 1.76 ns on an H200, where an integer's pass takes 0.74
  std::array<uint64_t, kLanes> sectors, distinct;
  std::array<uint32_t, kLanes> passes{}, lanes{};
  size_t sector_count = 0, count = 0;
  const auto find = [](std::array<uint64_t, kLanes>& known, size_t& size, uint64_t wanted) {
    const auto end = known.begin() + static_cast<ptrdiff_t>(size);
    const auto at = static_cast<size_t>(std::find(known.begin(), end, wanted) - known.begin());
    if (at == size) known[size++] = wanted;
    return at;
  };
  ForLanes(mask, [&](int l) { ++lanes[find(distinct, count, addresses[l])]; });
  for (size_t i = 0; i < count; ++i) {
    uint32_t& most = passes[find(sectors, sector_count, distinct[i] / 32)];
    most = std::max(most, lanes[i]);
  }
  // nvcc adds the integers of a warp that all have one address before they update memory.
  if (!floats && count == 1) passes[0] = 1;
  AtomicUnits& units = x.counting.total.global.atomic_units;
  for (size_t i = 0; i < sector_count; ++i) {
    units.Add(2 * (sectors[i] * 32 / kAtomicUnitBytes), passes[i]);
    units.Add(2 * sectors[i] + 1, passes[i] * (floats ? kFloatPasses : 1));
  }
}

void CountDense(BlockState& x, uint64_t first, uint32_t bytes, bool store) {
  const uint64_t end = first + uint64_t{bytes} * kLanes;
  const uint32_t wavefronts = std::max(1u, bytes / 4);
  const bool aligned = first % (uint64_t{bytes} * kLanes / wavefronts) == 0;
  const GlobalAccess access{
      kLanes, bytes, (end + 31) / 32 - first / 32, {wavefronts, aligned ? 0 : wavefronts}};
  CountAccess(x, access, store, false, [first](size_t i) { return first / 32 + i; });
}

void CountCopy(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes,
               bool past_l1) {
  const auto [access, met] = CountLanes(x, addresses, mask, bytes, false, past_l1);
  x.counting.total.async_copy_bytes += access.lanes * bytes;
  x.timing.touch.copied = static_cast<uint32_t>(past_l1 ? access.sectors : met.fresh + met.lost) *
                          32;
}

void CountBulk(BlockState& x, uint64_t address, uint64_t bytes, bool store) {
  const uint64_t first = address / 32;
  const uint64_t end = (address + bytes + 31) / 32;
  const SectorTable::Met met = (store ? x.counting.store_sectors : x.counting.load_sectors)
                                   .Touch(end - first, x.launch->l1_sectors,
                                          [first](size_t i) { return first + i; });
  (store ? x.counting.total.global.stores : x.counting.total.global.loads) += 1;
  (store ? x.counting.total.global.store_sectors : x.counting.total.global.load_sectors) += end -
                                                                                            first;
  (store ? x.counting.total.global.store_bytes : x.counting.total.global.load_bytes) += bytes;
  if (store) {  // data that goes into shared memory does not delay reads of shared memory
    x.counting.total.global.wavefronts += (bytes + 127) / 128;
    x.counting.total.shared.async_wavefronts += (bytes + 127) / 128;
  }
  x.counting.total.global.bulk_sectors += end - first;
  if (store) return;
  x.counting.total.global.reread_sectors += end - first - met.fresh;
  x.timing.read_before = x.timing.read_before && met.fresh == 0;
}

namespace {
/// Packets that carry data of another block's shared memory: one per 32 bytes of neighbouring
/// lanes, and one per lane that loads 16 bytes.
uint32_t Packets(const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  if (bytes > 8) return static_cast<uint32_t>(std::popcount(mask));
  uint64_t seen[kLanes];
  uint32_t n = 0;
  ForLanes(mask, [&](int l) {
    const uint64_t packet = addresses[l] / 32;
    if (std::find(seen, seen + n, packet) == seen + n) seen[n++] = packet;
  });
  return n;
}
}  // namespace

void CountShared(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  const uint64_t base = addresses[std::countr_zero(mask)];
  PatternTable::Pattern pattern{bytes, mask, {}, 0};
  ForLanes(mask, [&](int l) {
    pattern.offset[static_cast<size_t>(l)] = static_cast<uint32_t>(addresses[l] - base);
  });
  uint32_t worst = 0;
  if (bytes % 4 != 0) {
    worst = Wavefronts(addresses, mask, bytes);
  } else {
    PatternTable::Pattern& known = x.counting.conflicts.Entry(pattern);
    if (!known.Same(pattern)) {
      pattern.wavefronts = Wavefronts(addresses, mask, bytes);
      known = pattern;
    }
    worst = known.wavefronts;
  }
  CountWavefronts(x, worst);
  bool remote = false;
  ForLanes(mask, [&](int l) { remote |= IsRemote(x, addresses[l]); });
  if (!remote) return;
  x.timing.touch = {Touch::Level::kRemote, Packets(addresses, mask, bytes)};
  x.counting.total.shared.remote_packets += x.timing.touch.wavefronts;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
