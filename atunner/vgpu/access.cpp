// Addresses, bounds, and the shadow that finds races and uninitialised reads of shared memory.
#include "atunner/vgpu/access.h"

#include <algorithm>
#include <cstdio>

#include "atunner/vgpu/bank_conflicts.h"
#include "atunner/vgpu/used_bytes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

std::string Hex(uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

namespace {
Fault FaultAt(const Op& op, uint64_t address) {
  Fault fault{op.space, address, {}};
  fault.space = Resolve(op.space, fault.address);
  return fault;
}
}  // namespace

bool CheckAligned(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  if ((address & (bytes - 1)) == 0) return true;
  Report(x, op, Hazard::Kind::kMisaligned, lane,
         "address " + Hex(address) + " is not a multiple of " + std::to_string(bytes), FaultAt(op, address));
  return false;
}

std::byte* FindGlobal(Exec& x, const Op& op, int lane, uint64_t address, uint64_t bytes, const char* verb) {
  const auto range = x.launch->memory->Find(address);
  if (!range || address + bytes < address || !range->Contains(address, address + bytes)) {
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           std::string(verb) + " of " + std::to_string(bytes) + " bytes at " + Hex(address) + ", " +
               x.launch->memory->Describe(address),
           {Space::kGlobal, address, {}});
    return nullptr;
  }
  x.ranges[x.oldest_range++ % x.ranges.size()] = *range;
  return reinterpret_cast<std::byte*>(address);
}

const Range* RangeOf(const Exec& x, uint64_t address) {
  const auto at =
      std::ranges::find_if(x.ranges, [&](const Range& range) { return address >= range.base && address < range.end; });
  return at == x.ranges.end() ? nullptr : &*at;
}

Exec* SharedOwner(Exec& x, const Op& op, int lane, uint64_t& address) {
  const uint64_t rank = address >> kRankShift;
  if (rank == 0) return &x;
  const uint64_t blocks = x.launch->cluster.Count();
  if (rank > blocks || rank > x.gang->members.size()) {
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           "names shared memory of block " + std::to_string(rank - 1) + " of a cluster of " + std::to_string(blocks));
    return nullptr;
  }
  address &= (uint64_t{1} << kRankShift) - 1;
  Exec* owner = x.gang->members[rank - 1];
  if (owner->alive_threads > 0) return owner;
  Report(x, op, Hazard::Kind::kOutOfBounds, lane,
         "reaches into shared memory of block " + std::to_string(rank - 1) + " of the cluster, which has ended");
  return nullptr;
}

std::byte* WindowPointer(Exec& x, const Op& op, int lane, Space space, uint64_t address, uint64_t bytes,
                         const char* verb) {
  const auto inside = [&](uint64_t size) { return address + bytes <= size && address + bytes >= address; };
  switch (space) {
    case Space::kShared: {
      if (inside(x.shared.size())) return x.shared.data() + address;
      Exec* owner = SharedOwner(x, op, lane, address);
      if (owner == nullptr) return nullptr;
      if (inside(owner->shared.size())) return owner->shared.data() + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             std::string(verb) + " of " + std::to_string(bytes) + " bytes at shared address " + Hex(address) +
                 ", the block has " + std::to_string(x.shared.size()),
             {Space::kShared, address, {}});
      return nullptr;
    }
    case Space::kLocal: {
      const uint64_t per_thread = x.kernel->local_bytes;
      if (inside(per_thread)) return x.local.data() + x.ThreadOf(lane) * per_thread + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             std::string(verb) + " at local address " + Hex(address) + ", the thread has " +
                 std::to_string(per_thread) + " bytes",
             {Space::kLocal, address, {}});
      return nullptr;
    }
    default:
      if (inside(x.launch->params.size())) return const_cast<std::byte*>(x.launch->params.data()) + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane, std::string(verb) + " outside the parameters");
      return nullptr;
  }
}

namespace {

// ---- shared-memory shadow ------------------------------------------------------------------------------------------
std::string Other(const SharedShadow& word, bool writer) {
  const uint16_t thread = writer ? word.writer : word.reader;
  return (writer ? "written by thread " : "read by ") +
         (thread >= kProductParty ? std::string("several threads")
                                  : (writer ? "" : "thread ") + std::to_string(thread)) +
         " at line " + std::to_string(writer ? word.write_line : word.read_line) + " with no barrier between";
}

Fault Race(const Exec& x, const Op& op, uint64_t address, const SharedShadow& word, bool writer) {
  Hazard::Site other = SiteOf(x, op, x.block, writer ? word.writer : word.reader);
  other.line = writer ? word.write_line : word.read_line;
  return {Space::kShared, address, other};
}

bool SameWarpOrdered(const Exec& x, uint16_t other, uint32_t other_sync) {
  return other < kProductParty && other / kLanes == x.warp->index && other_sync != x.warp->sync_epoch;
}

/// Whether the word may still be read by others when the current thread writes it.
bool ReadUnordered(const Exec& x, const SharedShadow& s, uint16_t thread) {
  if (s.read_epoch != x.epoch || s.reader == thread) return false;
  if (s.reader >= kProductParty && s.reader < kBulkParty)
    return x.warp->index / kGroupWarps != static_cast<uint32_t>(s.reader - kProductParty);
  return !SameWarpOrdered(x, s.reader, s.read_sync);
}

std::string WrittenBy(const SharedShadow& s) {
  return s.writer == kBulkParty ? "where the bulk copy at line " + std::to_string(s.write_line) +
                                      " landed, without waiting for its mbarrier"
                                : Other(s, true);
}

uint8_t BytesOfWord(uint64_t word, uint64_t address, uint64_t bytes) {
  const uint64_t low = std::max(address, word * 4) - word * 4;
  const uint64_t high = std::min(address + bytes, word * 4 + 4) - word * 4;
  return static_cast<uint8_t>(((1u << (high - low)) - 1u) << low);
}

/// The block that an address means, without reporting: the caller has a pointer already.
Exec& OwnerOf(Exec& x, uint64_t& address) {
  const uint64_t rank = address >> kRankShift;
  address &= (uint64_t{1} << kRankShift) - 1;
  return rank == 0 || rank > x.gang->members.size() ? x : *x.gang->members[rank - 1];
}

/// An answer about the operation that Exec::answers keeps, under the number of the question.
template <class F>
bool Remembered(Exec& x, const Op& op, uint32_t question, F&& answer) {
  const auto [known, is_new] = x.answers.try_emplace({&op, question}, false);
  if (is_new) known->second = answer();
  return known->second;
}

/// Whether unwritten bytes at `at`, of a lane's load of `bytes`, are a struct's padding as far as one can tell: they
/// are copied, within the block or along with what was written.
bool IsPadding(Exec& x, const Op& op, const Exec& owner, uint64_t at, uint64_t address, uint64_t bytes) {
  if (op.width == 0 || (op.width < 8 && op.list_size < 2)) return false;
  const auto element = static_cast<uint32_t>((at - address) / op.width);
  const bool within =
      Remembered(x, op, 2 * element + 1, [&] { return OnlyCopied(*x.kernel, op, element) == Copied::kWithinBlock; });
  const bool copied = within || Remembered(x, op, 2 * element + 2,
                                           [&] { return OnlyCopied(*x.kernel, op, element) == Copied::kAnywhere; });
  if (within || !copied) return within;
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    if ((owner.shadow[word].initialised & BytesOfWord(word, address, bytes)) != 0) return true;
  }
  return false;
}

}  // namespace

bool CopiesPieces(Exec& x, const Op& op) {
  if (op.width >= 4 || op.list_size < 2) return false;
  return Remembered(x, op, sizeof(Op) - 1, [&] {
    for (uint32_t i = 0; i < op.list_size; ++i) {
      if (OnlyCopied(*x.kernel, op, i) == Copied::kNo) return false;
    }
    return true;
  });
}

bool WriteUnordered(const Exec& x, const SharedShadow& s, uint16_t thread) {
  if (s.writer == kBulkParty) return x.warp->seen_epoch < s.write_epoch;
  return s.write_epoch == x.epoch && s.writer != thread && !SameWarpOrdered(x, s.writer, s.write_sync);
}

bool Initialised(Exec& x, uint64_t address) {
  Exec& owner = OwnerOf(x, address);
  return owner.shadow[address / 4].initialised != 0;
}

void ShadowRead(Exec& x, const Op& op, int lane, uint64_t address, uint64_t bytes) {
  const uint64_t shown = address;
  Exec& owner = OwnerOf(x, address);
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  const bool pieces = op.width < 4 && op.list_size > 1;  // of a struct, which may have padding
  const uint64_t used = bytes > 4 && bytes <= 32 ? UsedBytes(*x.kernel, op) : kAllBytes;
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    if (used != kAllBytes && word * 4 >= address && (used >> (word * 4 - address) & 0xf) == 0) continue;
    SharedShadow& s = owner.shadow[word];
    const uint8_t need = BytesOfWord(word, address, bytes);
    const auto missing = static_cast<uint32_t>(need & ~s.initialised);
    const bool unwritten = pieces ? missing == need : missing != 0;
    if (unwritten &&
        !IsPadding(x, op, owner, word * 4 + static_cast<uint32_t>(std::countr_zero(missing)), address, bytes))
      ReportUnwritten(x, op, lane, "reads shared address " + Hex(shown) + " before anything was written there",
                      {Space::kShared, address, {}});
    if (s.in_flight & (kThreadCopy | kBulkCopy)) {
      return Report(x, op, Hazard::Kind::kAsyncCopyInFlight, lane,
                    "reads shared address " + Hex(address) + " while an asynchronous copy to it is in flight",
                    {Space::kShared, address, {}});
    }
    if (op.relaxed || &owner != &x) continue;
    if (WriteUnordered(x, s, thread)) {
      const bool bulk = s.writer == kBulkParty;
      return Report(x, op, bulk ? Hazard::Kind::kAsyncCopyInFlight : Hazard::Kind::kRace, lane,
                    "reads shared address " + Hex(address) + ", " + WrittenBy(s), Race(x, op, address, s, true));
    }
    NoteReader(x, word, thread, LineOf(x, op));
  }
}

void ShadowWrite(Exec& x, const Op& op, int lane, uint64_t address, uint64_t bytes, bool same_value, bool atomic) {
  Exec& owner = OwnerOf(x, address);
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    SharedShadow& s = owner.shadow[word];
    const uint8_t written = BytesOfWord(word, address, bytes);
    s.initialised |= written;
    owner.calm[word] = 0;
    if (&owner != &x) continue;
    if (s.in_flight & (kProductRead | kBulkRead | kBulkCopy)) {
      return Report(x, op, Hazard::Kind::kRace, lane,
                    "writes shared address " + Hex(address) + ", which an asynchronous operation still " +
                        (s.in_flight & kBulkCopy ? "writes" : "reads"));
    }
    const bool whole = written == 0xf;  // bytes of one word may belong to different threads: only whole words can race
    if (!atomic && !op.relaxed && whole && !same_value) {
      if (WriteUnordered(x, s, thread)) {
        return Report(x, op, Hazard::Kind::kRace, lane, "writes shared address " + Hex(address) + ", " + WrittenBy(s),
                      Race(x, op, address, s, true));
      }
      if (ReadUnordered(x, s, thread)) {
        return Report(x, op, Hazard::Kind::kRace, lane,
                      "writes shared address " + Hex(address) + ", " + Other(s, false), Race(x, op, address, s, false));
      }
    }
    if (atomic || op.relaxed || !whole) continue;
    s.write_epoch = x.epoch;
    s.writer = thread;
    s.write_sync = x.warp->sync_epoch;
    s.write_line = LineOf(x, op);
  }
}

// ---- local memory --------------------------------------------------------------------------------------------------
void CheckLocalRead(Exec& x, const Op& op, int lane, const std::byte* at, uint32_t bytes) {
  const uint8_t* defined = x.local_defined.data() + (at - x.local.data());
  if (std::any_of(defined, defined + bytes, [](uint8_t d) { return d != 0; })) return;
  if (ReportedBefore(x, op, Hazard::Kind::kUninitialisedLocal)) return;
  if (at > x.local.data() && defined[-1] != 0 && CopiesPieces(x, op)) return;
  const uint64_t address = static_cast<uint64_t>(at - x.local.data()) % x.kernel->local_bytes;
  Report(x, op, Hazard::Kind::kUninitialisedLocal, lane,
         "reads local address " + Hex(address) + " before anything was written there", {Space::kLocal, address, {}});
}

void MarkLocal(Exec& x, const std::byte* at, uint64_t bytes, bool defined) {
  if (x.check_global) std::memset(x.local_defined.data() + (at - x.local.data()), defined, bytes);
}

// ---- order ---------------------------------------------------------------------------------------------------------
void DeviceFence(Exec& x) { x.launch->clock->Fence(x.serial, x.epoch); }

void OrderGang(Gang& gang) {
  for (Exec* member : gang.members) {
    if (member->races && gang.members.size() > 1) DeviceFence(*member);
    ++member->epoch;
  }
  if (gang.members.size() > 1) {
    for (Exec* member : gang.members) Acquire(*member);
  }
}

namespace {

/// Where the lanes of one access to global memory go.
class LanePlaces {
 public:
  LanePlaces(const uint64_t* addresses, uint32_t mask, uint32_t bytes)
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

  /// Sectors, each once and in order: how many.
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

  /// Cycles of the load/store unit: it takes lanes with 128 bytes in all at once, and looks up one cache line of them
  /// per clock.
  uint32_t Lines() const {
    const uint32_t together = bytes_ <= 4 ? kLanes : std::max(1u, 128 / bytes_);
    const uint32_t changes = Changes(~uint64_t{127});
    uint32_t lines = 0;
    for (uint32_t first = 0; first < kLanes; first += together) {
      const uint32_t group = mask_ & static_cast<uint32_t>(((uint64_t{1} << together) - 1) << first);
      std::array<uint64_t, kLanes> seen;
      auto end = seen.begin();
      uint64_t highest = 0;
      for (uint32_t m = group & (changes | -group); m != 0; m &= m - 1) {
        const uint64_t line = addresses_[std::countr_zero(m)] / 128;
        if (line <= highest && std::find(seen.begin(), end, line) != end) continue;
        highest = std::max(highest, line);
        *end++ = line;
      }
      lines += static_cast<uint32_t>(end - seen.begin());
    }
    return lines;
  }

 private:
  /// Whether an access may lie in two sectors: what is aligned does not.
  bool CrossSectors() const {
    uint64_t bits = 0;
    ForLanes(mask_, [&](int l) { bits |= addresses_[l]; });
    return !std::has_single_bit(bytes_) || bytes_ > 32 || (bits & (bytes_ - 1)) != 0;
  }
  /// Active lanes whose address differs from that of the active one before in the bits of `which`, and the first.
  uint32_t Changes(uint64_t which) const {
    using Four [[gnu::vector_size(32)]] =
        uint64_t;  // left alone, the loop becomes comparisons that vectors do not have
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
  std::array<uint64_t, kLanes> steps_;  ///< bits in which a lane's address differs from that of the active one before
};

struct GlobalAccess {
  uint64_t lanes = 0;
  uint32_t bytes = 0;  ///< of a lane
  uint64_t sectors = 0;
  uint32_t wavefronts = 0;
};
/// sector(0) to sector(access.sectors - 1) are what it touches. `past_l1`: it neither looks for bytes there nor leaves
/// them.
template <class F>
SectorTable::Met CountAccess(Exec& x, const GlobalAccess& access, bool store, bool past_l1, F&& sector) {
  Counts& counts = x.counts;
  const bool streams = !store && x.timed && x.kernel->tracks[x.place].streams;
  const uint64_t kept = streams ? SectorTable::kShortly : x.launch->l1_sectors;
  const SectorTable::Met met = (store ? x.store_sectors : x.load_sectors).Touch(access.sectors, kept, sector);
  counts.global_wavefronts += access.wavefronts;
  if (store) {
    counts.global_stores += 1;
    counts.global_store_sectors += access.sectors;
    counts.global_store_bytes += access.lanes * access.bytes;
  } else {
    counts.global_loads += 1;
    counts.global_load_sectors += access.sectors;
    counts.global_load_bytes += access.lanes * access.bytes;
    const uint64_t gone = streams ? met.lost : 0;
    counts.reread_sectors += gone;
    (past_l1 ? counts.reread_sectors : counts.l1_hit_sectors) += access.sectors - met.fresh - gone;
    if (!past_l1 && !streams) counts.reuse_distance += met.distance;
  }
  using Level = Touch::Level;
  const Level near = past_l1 || (!store && met.lost > 0) ? Level::kL2 : Level::kL1;
  x.touch = {met.fresh > 0 ? Level::kMiss : near, access.wavefronts};
  return met;
}

/// The same of the lanes of `mask`.
struct CountedLanes {
  GlobalAccess access;
  SectorTable::Met met;
};
CountedLanes CountLanes(Exec& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes, bool store, bool past_l1) {
  const LanePlaces places(addresses, mask, bytes);
  std::array<uint64_t, size_t{2} * kLanes> sectors;
  const GlobalAccess access{static_cast<uint64_t>(std::popcount(mask)), bytes, places.Sectors(sectors), places.Lines()};
  return {access, CountAccess(x, access, store, past_l1, [&](size_t i) { return sectors[i]; })};
}

}  // namespace

// ---- counting ------------------------------------------------------------------------------------------------------
void CountGlobal(Exec& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes, bool store) {
  CountLanes(x, addresses, mask, bytes, store, false);
}

void CountDense(Exec& x, uint64_t first, uint32_t bytes, bool store) {
  const uint64_t end = first + uint64_t{bytes} * kLanes;
  GlobalAccess access{kLanes, bytes, (end + 31) / 32 - first / 32, 0};
  const uint64_t together = uint64_t{bytes} * (bytes <= 4 ? kLanes : std::max(1u, 128 / bytes));
  for (uint64_t at = first; at < end; at += together)
    access.wavefronts += static_cast<uint32_t>((at + together - 1) / 128 - at / 128 + 1);
  CountAccess(x, access, store, false, [first](size_t i) { return first / 32 + i; });
}

void CountCopy(Exec& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes, bool past_l1) {
  const auto [access, met] = CountLanes(x, addresses, mask, bytes, false, past_l1);
  x.counts.async_copy_bytes += access.lanes * bytes;
  x.touch.copied = static_cast<uint32_t>(past_l1 ? access.sectors : met.fresh + met.lost) * 32;
}

void CountBulk(Exec& x, uint64_t address, uint64_t bytes, bool store) {
  const uint64_t first = address / 32;
  const uint64_t end = (address + bytes + 31) / 32;
  const SectorTable::Met met =
      (store ? x.store_sectors : x.load_sectors).Touch(end - first, x.launch->l1_sectors, [first](size_t i) {
        return first + i;
      });
  (store ? x.counts.global_stores : x.counts.global_loads) += 1;
  (store ? x.counts.global_store_sectors : x.counts.global_load_sectors) += end - first;
  (store ? x.counts.global_store_bytes : x.counts.global_load_bytes) += bytes;
  x.counts.global_wavefronts += (bytes + 127) / 128;
  x.counts.async_wavefronts += (bytes + 127) / 128;
  x.counts.bulk_sectors += end - first;
  if (!store) x.counts.reread_sectors += end - first - met.fresh;
}

namespace {
/// In which another block's shared memory comes: 32 bytes for neighbouring lanes, but 16 for each that loads as many.
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

void CountShared(Exec& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  const uint64_t base = addresses[std::countr_zero(mask)];
  PatternTable::Pattern pattern{bytes, mask, {}, 0};
  ForLanes(mask, [&](int l) { pattern.offset[static_cast<size_t>(l)] = static_cast<uint32_t>(addresses[l] - base); });
  uint32_t worst = 0;
  if (bytes % 4 != 0) {
    worst = Wavefronts(addresses, mask, bytes);
  } else {
    PatternTable::Pattern& known = x.conflicts.Place(pattern);
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
  x.touch = {Touch::Level::kRemote, Packets(addresses, mask, bytes)};
  x.counts.remote_packets += x.touch.wavefronts;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
