// Addresses, bounds, and the shadow that finds races and uninitialised reads of shared memory.
#include "atunner/vgpu/access.h"

#include <algorithm>
#include <cstdio>

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

/// An answer about the operation that Exec::only_chosen keeps, under the number of the question: an address inside of
/// it.
template <class F>
bool Remembered(Exec& x, const Op& op, uint32_t question, F&& answer) {
  const auto* key = reinterpret_cast<const Op*>(reinterpret_cast<const std::byte*>(&op) + question % sizeof(Op));
  const auto [known, is_new] = x.only_chosen.try_emplace(key, false);
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

/// Cycles of the load/store unit for a global request: it takes lanes with 128 bytes in all at once, and looks up one
/// cache line of them per clock.
int Lines(const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  const uint32_t together = bytes <= 4 ? kLanes : std::max(1u, 128 / bytes);
  int lines = 0;
  for (uint32_t first = 0; first < kLanes; first += together) {
    uint64_t seen[kLanes];
    int n = 0;
    for (uint32_t lane = first; lane < first + together; ++lane) {
      if (((mask >> lane) & 1u) == 0) continue;
      const uint64_t line = addresses[lane] / 128;
      if (n > 0 && seen[n - 1] == line) continue;
      if (std::find(seen, seen + n, line) == seen + n) seen[n++] = line;
    }
    lines += n;
  }
  return lines;
}

/// What the sectors of one access meet.
struct Sectors {
  uint64_t fresh = 0;  ///< touched by the block for the first time
  uint64_t lost = 0;   ///< of the others: read so long ago that L1 has them no more

  /// The sectors from `first` up to `end`.
  void Note(Exec& x, uint64_t first, uint64_t end, bool store) {
    (store ? x.store_sectors : x.load_sectors).TouchAll(first, end, [&](bool is_fresh, uint32_t age) {
      if (is_fresh) {
        ++fresh;
      } else if (!store) {
        x.counts.reuse_distance += age;
        lost += age > x.launch->l1_sectors ? 1 : 0;
      }
    });
  }
};

struct GlobalAccess {
  uint64_t lanes = 0;
  uint32_t bytes = 0;  ///< of a lane
  uint64_t sectors = 0;
  Sectors met;
  uint32_t wavefronts = 0;
};
void CountAccess(Exec& x, const GlobalAccess& access, bool store) {
  (store ? x.counts.global_stores : x.counts.global_loads) += 1;
  (store ? x.counts.global_store_sectors : x.counts.global_load_sectors) += access.sectors;
  (store ? x.counts.global_store_bytes : x.counts.global_load_bytes) += access.lanes * access.bytes;
  x.counts.global_wavefronts += access.wavefronts;
  if (!store) x.counts.l1_hit_sectors += access.sectors - access.met.fresh;
  using Level = Touch::Level;
  x.touch = {access.met.fresh > 0 ? Level::kMiss : access.met.lost > 0 ? Level::kL2 : Level::kL1, access.wavefronts};
}

}  // namespace

// ---- counting ------------------------------------------------------------------------------------------------------
void CountGlobal(Exec& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes, bool store) {
  uint64_t sectors[kLanes * 2];
  int n = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint64_t a = addresses[std::countr_zero(m)];
    for (uint64_t s = a / 32; s <= (a + bytes - 1) / 32; ++s) {
      if (n == 0 || sectors[n - 1] != s) sectors[n++] = s;
    }
  }
  if (!std::is_sorted(sectors, sectors + n)) std::sort(sectors, sectors + n);
  n = static_cast<int>(std::unique(sectors, sectors + n) - sectors);
  GlobalAccess access{static_cast<uint64_t>(std::popcount(mask)),
                      bytes,
                      static_cast<uint64_t>(n),
                      {},
                      static_cast<uint32_t>(Lines(addresses, mask, bytes))};
  for (int i = 0; i < n; ++i) access.met.Note(x, sectors[i], sectors[i] + 1, store);
  CountAccess(x, access, store);
}

void CountDense(Exec& x, uint64_t first, uint32_t bytes, bool store) {
  const uint64_t end = first + uint64_t{bytes} * kLanes;
  GlobalAccess access{kLanes, bytes, (end + 31) / 32 - first / 32, {}, 0};
  access.met.Note(x, first / 32, (end + 31) / 32, store);
  const uint64_t together = uint64_t{bytes} * (bytes <= 4 ? kLanes : std::max(1u, 128 / bytes));
  for (uint64_t at = first; at < end; at += together)
    access.wavefronts += static_cast<uint32_t>((at + together - 1) / 128 - at / 128 + 1);
  CountAccess(x, access, store);
}

void CountBulk(Exec& x, uint64_t address, uint64_t bytes, bool store) {
  const uint64_t first = address / 32;
  const uint64_t end = (address + bytes + 31) / 32;
  Sectors met;
  met.Note(x, first, end, store);
  (store ? x.counts.global_stores : x.counts.global_loads) += 1;
  (store ? x.counts.global_store_sectors : x.counts.global_load_sectors) += end - first;
  (store ? x.counts.global_store_bytes : x.counts.global_load_bytes) += bytes;
  x.counts.global_wavefronts += (bytes + 127) / 128;
  x.counts.async_wavefronts += (bytes + 127) / 128;
  x.counts.bulk_sectors += end - first;
  if (!store) x.counts.bulk_reread_sectors += end - first - met.fresh;
}

namespace {
/// The most distinct words that fall into one bank. Lanes that want the same word share it.
uint32_t Wavefronts(const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  uint64_t words[kLanes * 4];
  int n = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint64_t address = addresses[std::countr_zero(m)];
    for (uint64_t w = address / 4; w <= (address + bytes - 1) / 4; ++w) {
      if (n == 0 || words[n - 1] != w) words[n++] = w;
    }
  }
  if (!std::is_sorted(words, words + n)) std::sort(words, words + n);
  n = static_cast<int>(std::unique(words, words + n) - words);
  uint8_t banks[32] = {};
  uint8_t worst = 1;
  for (int i = 0; i < n; ++i) worst = std::max(worst, ++banks[words[i] % 32]);
  return worst;
}

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
