// Checks of reads of global memory: unwritten bytes, and races.
//
// Within a block, accesses are ordered as in shared memory (block_shadow.cpp). Between blocks, an
// access is ordered before another if a fence of the first block follows it, a flag was written
// after that fence, and the second block has read the flag (synchronisation.h, RaceClock). Fences
// of other blocks up to that time count as well: the check may miss a race, but never reports one
// between accesses that are ordered.
#include "atunner/vgpu/analysis/used_bytes.h"
#include "atunner/vgpu/checks/global_lines.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

// ---- reads
void CheckLineRead(BlockState& x, const Op& op, const LinePart& part, const uint64_t* addresses,
                   uint32_t bytes, const GlobalShadow& shadow) {
  const bool strong = HasStrongWrites(x, shadow, part.line);
  for (uint32_t m = part.lanes; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t end = addresses[l] + bytes;
    for (uint64_t word = addresses[l] & ~uint64_t{3}; word < end; word += 4) {
      const WordWriter writer = WriterOf(shadow, part.line,
                                         static_cast<uint32_t>(word / 4 % kWordsPerLine));
      const bool raced = (writer.bytes & BytesOfWord(word, addresses[l], bytes)) != 0 &&
                         Unordered(x, writer, x.ThreadOf(l));
      if (!raced && !strong && !op.order.read_only) continue;
      if (word >= addresses[l] && Dropped(*x.kernel, op, word - addresses[l], 4)) continue;
      if (op.order.read_only && !CheckReadOnly(x, op, l, word, shadow)) break;
      if (strong && !CheckAgainstStrong(x, op, l, word, false, shadow)) break;
      if (!raced) continue;
      ReportRace(x, op, l, addresses[l], "reads", "written", writer.serial, writer.thread,
                 writer.op);
      break;
    }
  }
}

/// True if a load through the read-only path may read what the kernel wrote.
bool ReadsOwnResults(const BlockState& x, const Op& op, const GlobalShadow& shadow, uint64_t line) {
  return op.order.read_only && InThisLaunch(x, shadow.lines[line].write_serial);
}

inline void NoteRead(const BlockState& x, const LineAccess& now, uint64_t line,
                     const GlobalShadow& shadow) {
  LineAccess& last = shadow.lines[line].last;
  if (last.serial != now.serial && InThisLaunch(x, last.serial)) shadow.foreign[line] = last;
  const bool same = last.op == now.op && last.serial == now.serial && last.epoch == now.epoch &&
                    last.sync == now.sync && last.warp == now.warp;
  if (!same) {
    last = now;
    return;
  }
  if (last.origin != now.origin) last.origin = LineAccess::kIrregular;
  last.words |= now.words;
  last.words_per_lane = now.words_per_lane;
}

void ReadLine(BlockState& x, const Op& op, const LinePart& part, const uint64_t* addresses,
              uint32_t bytes, const Pattern& pattern, const GlobalShadow& shadow) {
  const LineLock lock(x, shadow.base + part.line * kShadowLineBytes);
  const LineAccess now = AccessOf(x, op, part, pattern, shadow);
  if (!NoOtherWrites(x, shadow, part.line, now) || ReadsOwnResults(x, op, shadow, part.line))
    CheckLineRead(x, op, part, addresses, bytes, shadow);
  if (!Peeks(op)) NoteRead(x, now, part.line, shadow);
}

void CheckReadRaces(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                    const Pattern& pattern, uint32_t bytes, const GlobalShadow& shadow) {
  if (pattern.dense) {
    ForLines(pattern, shadow, [&](const LinePart& part, uint64_t, uint64_t) {
      ReadLine(x, op, part, addresses, bytes, pattern, shadow);
      return true;
    });
    return;
  }
  const uint32_t words = LowBits(std::max(1u, bytes / 4));
  LinePart part;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t offset = addresses[l] - shadow.base;
    const uint64_t line = offset / kShadowLineBytes;
    if (line != part.line) {
      if (part.lanes != 0) ReadLine(x, op, part, addresses, bytes, pattern, shadow);
      part = {line, 0, 0};
    }
    part.words |= words << (offset / 4 % kWordsPerLine);
    part.lanes |= 1u << l;
  }
  ReadLine(x, op, part, addresses, bytes, pattern, shadow);
}

/// Lanes whose whole access is unwritten. A vector load may read padding behind written bytes, so
/// that an access with some written bytes counts as defined.
template <class Bytes>
uint32_t UndefinedLanes(uint32_t mask, const uint64_t* addresses, const GlobalShadow& shadow) {
  uint32_t undefined = 0;
  ForLanes(mask, [&](int l) {
    Bytes written;
    std::memcpy(&written, shadow.defined + (addresses[l] - shadow.base), sizeof written);
    undefined |= (written == Bytes{} ? 1u : 0u) << l;
  });
  return undefined;
}
uint32_t UndefinedLanes(uint32_t mask, const uint64_t* addresses, uint32_t bytes,
                        const GlobalShadow& shadow) {
  switch (bytes) {
    case 1:
      return UndefinedLanes<uint8_t>(mask, addresses, shadow);
    case 2:
      return UndefinedLanes<uint16_t>(mask, addresses, shadow);
    case 4:
      return UndefinedLanes<uint32_t>(mask, addresses, shadow);
    case 8:
      return UndefinedLanes<uint64_t>(mask, addresses, shadow);
    case 16:
      return UndefinedLanes<std::array<uint64_t, 2>>(mask, addresses, shadow);
    default:
      return UndefinedLanes<std::array<uint64_t, 4>>(mask, addresses, shadow);
  }
}

/// Lanes that use only undefined bytes, for a load that drops some of the bytes it reads.
uint32_t UndefinedUse(const BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                      uint32_t bytes, const GlobalShadow& shadow) {
  const uint64_t used = UsedBytes(*x.kernel, op);
  if (used == kAllBytes) return 0;
  uint32_t undefined = 0;
  ForLanes(mask, [&](int l) {
    const uint8_t* defined = shadow.defined + (addresses[l] - shadow.base);
    bool any = false;
    for (uint32_t i = 0; i < bytes; ++i) any = any || ((used >> i & 1u) != 0 && defined[i] != 0);
    undefined |= (any ? 0u : 1u) << l;
  });
  return undefined;
}

void ReportUndefined(BlockState& x, const Op& op, int lane, uint64_t address) {
  if (ReportedBefore(x, op, Hazard::Kind::kUninitialisedGlobal)) return;
  Report(x, op, Hazard::Kind::kUninitialisedGlobal, lane,
         "reads " + Hex(address) + " before anything was written there, " +
             x.launch->memory->Describe(address),
         {Space::kGlobal, address, {}});
}

}  // namespace

void CheckGlobalRead(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                     uint32_t bytes, const Range& range, Layout layout) {
  if (range.shadow == nullptr || !(x.checks.any || x.checks.global_races)) return;
  const GlobalShadow& shadow = *range.shadow;
  const bool flags = op.relaxed && op.order.polls;
  if (shadow.complete && !x.checks.global_races) return;
  if (flags && x.checks.global_races) ReadFlags(x, op, mask, addresses, bytes, shadow);
  if (shadow.complete && flags) return;
  const Pattern pattern = PatternOf(mask, addresses, bytes, layout);
  const auto written = [&] {
    const uint8_t* first = shadow.defined + (addresses[pattern.first] - range.base);
    return AllDefined(first, static_cast<size_t>(pattern.count) * bytes);
  };
  const bool all_defined = shadow.complete || (pattern.dense && written());
  if (x.checks.any && !all_defined) {
    uint32_t undefined = UndefinedLanes(mask, addresses, bytes, shadow);
    if (undefined == 0) undefined = UndefinedUse(x, op, mask, addresses, bytes, shadow);
    if (undefined != 0 && CopiesPieces(x, op)) {
      ForLanes(undefined, [&](int l) {
        const uint64_t offset = addresses[l] - shadow.base;
        if (offset > 0 && shadow.defined[offset - 1] != 0) undefined &= ~(1u << l);
      });
    }
    if (undefined != 0) {
      const int lane = std::countr_zero(undefined);
      ReportUndefined(x, op, lane, addresses[lane]);
    }
  }
  if (x.checks.global_races && !flags)
    CheckReadRaces(x, op, mask, addresses, pattern, bytes, shadow);
}

bool ReadDenseQuietly(BlockState& x, const Op& op, uint64_t first, uint32_t bytes,
                      const Range& range) {
  if (bytes < 4) return false;
  if (range.shadow == nullptr || !(x.checks.any || x.checks.global_races)) return true;
  const GlobalShadow& shadow = *range.shadow;
  if (x.checks.global_races && op.relaxed) return false;
  if (!x.checks.global_races) {
    return !x.checks.any || shadow.complete ||
           AllDefined(shadow.defined + (first - shadow.base), static_cast<size_t>(kLanes) * bytes);
  }
  // The loop of ForLines, with the values that all lines share computed once.
  uint64_t line = (first - shadow.base) / kShadowLineBytes;
  uint64_t word = (first - shadow.base) / 4 % kWordsPerLine;
  const Pattern pattern{true, true, 0, kLanes, first, std::countr_zero(bytes)};
  LineAccess now = AccessOf(x, op, {line, 0, 0}, pattern, shadow);
  for (uint64_t left = uint64_t{bytes} / 4 * kLanes; left > 0; ++line) {
    const uint64_t here = std::min(kWordsPerLine - word, left);
    now.words = LowBits(here) << word;
    const uint64_t at = line * kShadowLineBytes + 4 * word;
    const LineLock lock(x, shadow.base + at);
    if (x.checks.any && !AllDefined(shadow, {line, now.words, 0}, at)) return false;
    if (!NoOtherWrites(x, shadow, line, now) || ReadsOwnResults(x, op, shadow, line)) return false;
    if (!Peeks(op)) NoteRead(x, now, line, shadow);
    now.origin = static_cast<int16_t>(now.origin - int16_t{kWordsPerLine});
    word = 0;
    left -= here;
  }
  return true;
}

void NoteGlobalRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes) {
  const Range* range = RangeOf(x.allocations, address);
  if (!x.checks.track_stores || range == nullptr || range->shadow == nullptr || bytes == 0) return;
  const uint8_t* defined = range->shadow->defined + (address - range->base);
  if (x.checks.any && !range->shadow->complete && std::memchr(defined, 1, bytes) == nullptr)
    ReportUndefined(x, op, lane, address);
}

void NoteGlobalCopy(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes) {
  NoteGlobalRead(x, op, lane, address, bytes);
  const Range* range = RangeOf(x.allocations, address);
  if (!x.checks.global_races || range == nullptr || range->shadow == nullptr) return;
  const GlobalShadow& shadow = *range->shadow;
  uint64_t addresses[kLanes];
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t line = (at - shadow.base) / kShadowLineBytes;
    const uint64_t end = std::min(shadow.base + (line + 1) * kShadowLineBytes, address + bytes);
    const uint64_t first_word = (at - shadow.base) / 4 % kWordsPerLine;
    const uint64_t words = (end - (at & ~uint64_t{3}) + 3) / 4;
    addresses[lane] = at;
    ReadLine(x, op, {line, LowBits(words) << first_word, 1u << lane}, addresses,
             static_cast<uint32_t>(end - at), {}, shadow);
    at = end;
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
