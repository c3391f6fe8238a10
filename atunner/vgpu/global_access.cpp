// Global memory under the checks: which bytes were written, and which accesses no synchronisation orders.
//
// Within a block, order is told by epochs as in shared memory. Between blocks, one access is ordered before another
// when a fence of the first block followed it, and the second block looked at a flag (an atomic, a volatile load)
// after that fence. Which flag is not asked, so that no order is ever overlooked.
#include <algorithm>

#include "atunner/vgpu/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint32_t kWordsPerLine = kShadowLineBytes / 4;

class LineLock {
 public:
  LineLock(const Exec& x, uint64_t address)
      : flag_(x.launch->parallel ? &x.launch->memory->locks().Of(address) : nullptr) {
    while (flag_ != nullptr && flag_->test_and_set(std::memory_order_acquire)) {
    }
  }
  ~LineLock() {
    if (flag_ != nullptr) flag_->clear(std::memory_order_release);
  }
  LineLock(const LineLock&) = delete;
  LineLock& operator=(const LineLock&) = delete;

 private:
  std::atomic_flag* flag_;
};

uint32_t OpIndex(const Exec& x, const Op& op) { return static_cast<uint32_t>(&op - x.kernel->ops.data()); }

bool InThisLaunch(const Exec& x, uint32_t serial) { return serial >= x.launch->first_serial; }

/// Bits of the bytes of the word at `word` that an access covers.
uint32_t BytesOfWord(uint64_t word, uint64_t address, uint64_t bytes) {
  const uint64_t low = std::max(address, word) - word;
  const uint64_t high = std::min(address + bytes, word + 4) - word;
  return ((1u << (high - low)) - 1u) << low;
}

void ReportRace(Exec& x, const Op& op, int lane, uint64_t address, const char* verb, const char* earlier,
                uint32_t serial, uint32_t thread, uint32_t other_op) {
  if (ReportedBefore(x, op, Hazard::Kind::kRace)) return;
  const uint64_t block = serial - x.launch->first_serial;
  const bool known = other_op < x.kernel->ops.size();
  Hazard::Site other;
  if (known) other = SiteOf(x, x.kernel->ops[other_op], block, thread);
  other.block = block;
  other.thread = thread;
  const std::string line = known ? " at line " + std::to_string(other.line) : "";
  const std::string who = block == x.block ? " by thread " + std::to_string(thread) + line + " with no barrier between"
                                           : " by block " + std::to_string(block) + ", thread " +
                                                 std::to_string(thread) + line + " with nothing that orders them";
  Report(x, op, Hazard::Kind::kRace, lane, std::string(verb) + " " + Hex(address) + ", " + earlier + who,
         {Space::kGlobal, address, other});
}

/// Whether what `writer` did is in conflict with an access by `thread` now.
bool Unordered(const Exec& x, const WordWriter& writer, uint32_t thread) {
  if (!InThisLaunch(x, writer.serial)) return false;
  if (writer.serial != x.serial) return !x.launch->clock->Ordered(writer.serial, writer.epoch, x.acquired);
  if (writer.epoch != x.epoch || writer.thread == thread) return false;
  return writer.thread / kLanes != x.warp->index || writer.sync == x.warp->sync_epoch;
}

/// The thread that read a word of a line.
std::optional<uint32_t> ThreadOf(const LineAccess& reader, uint32_t word) {
  if (reader.origin == LineAccess::kIrregular) return std::nullopt;
  const int lane = (static_cast<int>(word) - reader.origin) >> reader.words_per_lane;
  return reader.warp * uint32_t{kLanes} + static_cast<uint32_t>(std::clamp(lane, 0, kLanes - 1));
}

/// Whether an earlier read of a word is in conflict with a write by `thread` now. Where another block has synchronised
/// at all, what it read is taken for ordered: releasing reads needs no fence.
bool Unordered(const Exec& x, const LineAccess& reader, uint32_t word, uint32_t thread) {
  if (!InThisLaunch(x, reader.serial) || ((reader.words >> word) & 1u) == 0) return false;
  if (reader.serial != x.serial) return x.acquired == 0;
  if (reader.epoch != x.epoch) return false;
  if (reader.warp != x.warp->index) return true;
  const auto by = ThreadOf(reader, word);
  return reader.sync == x.warp->sync_epoch && by && *by != thread;
}

WordWriter WriterOf(const GlobalShadow& shadow, uint64_t line, uint32_t word) {
  const LineAccess& writer = shadow.lines[line].writer;
  if (((writer.words >> word) & 1u) == 0) return shadow.writers[line * kWordsPerLine + word];
  return {writer.serial, writer.epoch,
          writer.sync,   ThreadOf(writer, word).value_or(0) & 1023u,
          15u,           std::min(writer.op, kUnknownOp) & kUnknownOp};
}

/// Gives words that the line's writer stands for writers of their own.
void Spell(const GlobalShadow& shadow, uint64_t line, uint32_t words) {
  LineAccess& writer = shadow.lines[line].writer;
  for (uint32_t m = writer.words & words; m != 0; m &= m - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(m));
    shadow.writers[line * kWordsPerLine + word] = WriterOf(shadow, line, word);
  }
  writer.words &= ~words;
}

/// Whether every byte was written. Vectors look at many bytes faster than they can stop at the first.
bool AllDefined(const uint8_t* defined, size_t bytes) {
  uint8_t missing = 0;
  for (size_t i = 0; i < bytes; ++i) missing |= static_cast<uint8_t>(defined[i] == 0);
  return missing == 0;
}

// ---- accesses of a warp ---------------------------------------------------------------------------------------------
/// How the lanes of an access lie to each other.
struct Pattern {
  bool regular = false;  ///< lane l at lane0 + l * bytes
  bool dense = false;    ///< and no lane is missing between the first and the last
  int first = 0;
  int count = 0;
  uint64_t lane0 = 0;
  int shift = 0;  ///< bytes of a lane, as a power of two

  uint64_t Bytes(int lanes) const { return static_cast<uint64_t>(lanes) << shift; }
};
Pattern PatternOf(uint32_t mask, const uint64_t* addresses, uint32_t bytes) {
  if (bytes < 4) return {};
  const int first = std::countr_zero(mask);
  const int shift = std::countr_zero(bytes);
  const uint64_t lane0 = addresses[first] - (static_cast<uint64_t>(first) << shift);
  uint64_t different = 0;
  ForLanes(mask, [&](int l) { different |= addresses[l] ^ (lane0 + (static_cast<uint64_t>(l) << shift)); });
  const uint64_t lanes = mask >> first;
  return {different == 0, different == 0 && (lanes & (lanes + 1)) == 0, first, std::popcount(mask), lane0, shift};
}

/// The part of an access that falls into one line.
struct LinePart {
  uint64_t line = ~uint64_t{0};
  uint32_t words = 0;
  uint32_t lanes = 0;
};

LineAccess AccessOf(const Exec& x, const Op& op, const LinePart& part, const Pattern& pattern,
                    const GlobalShadow& shadow) {
  LineAccess access{x.serial,
                    x.epoch,
                    x.warp->sync_epoch,
                    part.words,
                    OpIndex(x, op),
                    LineAccess::kIrregular,
                    static_cast<uint8_t>(x.warp->index),
                    0};
  if (!pattern.regular) return access;
  const auto start = static_cast<int64_t>(shadow.base + part.line * kShadowLineBytes);
  access.origin = static_cast<int16_t>((static_cast<int64_t>(pattern.lane0) - start) / 4);
  access.words_per_lane = static_cast<uint8_t>(pattern.shift - 2);
  return access;
}

uint32_t LowBits(uint64_t count) { return count >= 32 ? ~0u : (1u << count) - 1; }

/// Calls `f` for each line of a dense access, until one call returns false.
template <class F>
bool ForLines(const Pattern& pattern, const GlobalShadow& shadow, F&& f) {
  const uint64_t low = pattern.lane0 + pattern.Bytes(pattern.first) - shadow.base;
  const uint64_t end = low + pattern.Bytes(pattern.count);
  const uint64_t lane0 = pattern.lane0 - shadow.base;
  for (uint64_t at = low; at < end;) {
    const uint64_t line = at / kShadowLineBytes;
    const uint64_t stop = std::min(end, (line + 1) * kShadowLineBytes);
    const uint32_t words = LowBits((stop - at) / 4) << (at / 4 % kWordsPerLine);
    const uint64_t first_lane = (at - lane0) >> pattern.shift;
    const uint64_t last_lane = (stop - 1 - lane0) >> pattern.shift;
    const uint32_t lanes = LowBits(last_lane + 1) & ~LowBits(first_lane);
    if (!f(LinePart{line, words, lanes}, at, stop)) return false;
    at = stop;
  }
  return true;
}

// ---- reads ---------------------------------------------------------------------------------------------------------
void CheckLineRead(Exec& x, const Op& op, const LinePart& part, const uint64_t* addresses, uint32_t bytes,
                   const GlobalShadow& shadow) {
  for (uint32_t m = part.lanes; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t end = addresses[l] + bytes;
    for (uint64_t word = addresses[l] & ~uint64_t{3}; word < end; word += 4) {
      const WordWriter writer = WriterOf(shadow, part.line, static_cast<uint32_t>(word / 4 % kWordsPerLine));
      if ((writer.bytes & BytesOfWord(word, addresses[l], bytes)) == 0 || !Unordered(x, writer, x.ThreadOf(l)))
        continue;
      ReportRace(x, op, l, addresses[l], "reads", "written", writer.serial, writer.thread, writer.op);
      break;
    }
  }
}

/// Whether nothing was written to the line that an access by this block could be in conflict with.
bool NoOtherWrites(const Exec& x, const ShadowLine& line, const LineAccess& now) {
  if (!InThisLaunch(x, line.write_serial)) return true;
  if (line.write_serial != x.serial || line.several == x.launch->first_serial) return false;
  const LineAccess& writer = line.writer;
  return line.write_epoch < x.epoch || (line.written & now.words) == 0 ||
         (writer.serial == x.serial && writer.SameThreads(now) && (now.words & ~writer.words) == 0);
}

void ReadLine(Exec& x, const Op& op, const LinePart& part, const uint64_t* addresses, uint32_t bytes,
              const Pattern& pattern, const GlobalShadow& shadow) {
  ShadowLine& line = shadow.lines[part.line];
  const LineLock lock(x, shadow.base + part.line * kShadowLineBytes);
  LineAccess now = AccessOf(x, op, part, pattern, shadow);
  if (!NoOtherWrites(x, line, now)) CheckLineRead(x, op, part, addresses, bytes, shadow);
  LineAccess& last = line.last;
  if (last.serial != x.serial && InThisLaunch(x, last.serial)) shadow.foreign[part.line] = last;
  const bool same = last.serial == now.serial && last.epoch == now.epoch && last.sync == now.sync &&
                    last.op == now.op && last.warp == now.warp;
  if (same && last.origin != now.origin) now.origin = LineAccess::kIrregular;
  if (same) now.words |= last.words;
  last = now;
}

void CheckReadRaces(Exec& x, const Op& op, uint32_t mask, const uint64_t* addresses, const Pattern& pattern,
                    uint32_t bytes, const GlobalShadow& shadow) {
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

/// A vector load may read padding behind what was written: a lane's access counts as undefined when all of it is.
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
uint32_t UndefinedLanes(uint32_t mask, const uint64_t* addresses, uint32_t bytes, const GlobalShadow& shadow) {
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

void ReportUndefined(Exec& x, const Op& op, int lane, uint64_t address) {
  if (ReportedBefore(x, op, Hazard::Kind::kUninitialisedGlobal)) return;
  Report(x, op, Hazard::Kind::kUninitialisedGlobal, lane,
         "reads " + Hex(address) + " before anything was written there, " + x.launch->memory->Describe(address),
         {Space::kGlobal, address, {}});
}

}  // namespace

void CheckGlobalRead(Exec& x, const Op& op, uint32_t mask, const uint64_t* addresses, uint32_t bytes,
                     const Range& range) {
  if (range.shadow == nullptr || !(x.check || x.races)) return;
  const GlobalShadow& shadow = *range.shadow;
  if (shadow.complete && (!x.races || op.relaxed)) return;
  const Pattern pattern = PatternOf(mask, addresses, bytes);
  const auto written = [&] {
    const uint8_t* first = shadow.defined + (addresses[pattern.first] - range.base);
    return AllDefined(first, static_cast<size_t>(pattern.count) * bytes);
  };
  const bool all_defined = shadow.complete || (pattern.dense && written());
  if (x.check && !all_defined) {
    if (const uint32_t undefined = UndefinedLanes(mask, addresses, bytes, shadow)) {
      const int lane = std::countr_zero(undefined);
      ReportUndefined(x, op, lane, addresses[lane]);
    }
  }
  if (x.races && !op.relaxed) CheckReadRaces(x, op, mask, addresses, pattern, bytes, shadow);
}

// ---- writes --------------------------------------------------------------------------------------------------------
namespace {

/// False after reporting a race of a write to one word.
bool CheckWordWrite(Exec& x, const Op& op, int lane, uint64_t word, uint32_t bytes, const WordWriter& writer,
                    const LineAccess& last, const LineAccess& foreign) {
  const uint32_t thread = x.ThreadOf(lane);
  if ((writer.bytes & bytes) != 0 && Unordered(x, writer, thread)) {
    ReportRace(x, op, lane, word, "writes", "written", writer.serial, writer.thread, writer.op);
    return false;
  }
  if (bytes != 0xf) return true;  // bytes of one word may belong to different threads
  const auto at = static_cast<uint32_t>(word / 4 % kWordsPerLine);
  for (const LineAccess* reader : {&last, &foreign}) {
    if (!Unordered(x, *reader, at, thread)) continue;
    const uint32_t by = ThreadOf(*reader, at).value_or(uint32_t{reader->warp} * kLanes);
    ReportRace(x, op, lane, word, "writes", "read", reader->serial, by, reader->op);
    return false;
  }
  return true;
}

/// An access within one line.
struct LineWrite {
  uint64_t address = 0;
  uint32_t bytes = 0;
  const std::byte* value = nullptr;
};

/// Whether a store leaves everything as it was.
bool ChangesNothing(const LineWrite& write, const uint8_t* defined) {
  return write.value != nullptr && AllDefined(defined, write.bytes) &&
         std::memcmp(reinterpret_cast<const void*>(write.address), write.value, write.bytes) == 0;
}

void NoteWriter(const Exec& x, ShadowLine& line, uint32_t words) {
  const bool goes_on = line.write_serial == x.serial && line.write_epoch == x.epoch;
  line.written = (goes_on ? line.written : 0) | words;
  if (line.write_serial != x.serial && InThisLaunch(x, line.write_serial)) line.several = x.launch->first_serial;
  line.write_serial = x.serial;
  line.write_epoch = x.epoch;
}

void WriteLine(Exec& x, const Op& op, int lane, const LineWrite& write, const GlobalShadow& shadow) {
  const uint64_t index = (write.address - shadow.base) / kShadowLineBytes;
  ShadowLine& line = shadow.lines[index];
  const LineLock lock(x, write.address);
  const uint64_t first_word = (write.address - shadow.base) / 4 % kWordsPerLine;
  const uint64_t past_word = ((write.address - shadow.base) % kShadowLineBytes + write.bytes + 3) / 4;
  const uint32_t words = LowBits(past_word) & ~LowBits(first_word);
  Spell(shadow, index, words);
  uint8_t* defined = shadow.defined + (write.address - shadow.base);
  const bool same_value = ChangesNothing(write, defined);
  std::memset(defined, 1, write.bytes);
  if (write.value != nullptr) std::memcpy(reinterpret_cast<void*>(write.address), write.value, write.bytes);
  const uint32_t thread = x.ThreadOf(lane);
  bool clean = true;
  for (uint64_t word = write.address & ~uint64_t{3}; word < write.address + write.bytes; word += 4) {
    WordWriter& writer = shadow.writers[(word - shadow.base) / 4];
    const uint32_t covered = BytesOfWord(word, write.address, write.bytes);
    const bool mine = writer.serial == x.serial && writer.thread == thread && writer.epoch == x.epoch;
    if (same_value) {  // of several that write the same value none stands for all
      if (InThisLaunch(x, writer.serial) && !mine) writer.serial = 0;
      continue;
    }
    clean = clean && CheckWordWrite(x, op, lane, word, covered, writer, line.last, shadow.foreign[index]);
    writer = {x.serial,
              x.epoch,
              x.warp->sync_epoch,
              thread & 1023u,
              (mine ? writer.bytes | covered : covered) & 15u,
              std::min(OpIndex(x, op), kUnknownOp) & kUnknownOp};
  }
  if (!same_value) NoteWriter(x, line, words);
}

// ---- dense writes ---------------------------------------------------------------------------------------------------
/// Whether an earlier read cannot be in conflict with a write.
bool NoConflict(const Exec& x, const LineAccess& reader, const LineAccess& now) {
  if (!InThisLaunch(x, reader.serial) || (reader.words & now.words) == 0) return true;
  if (reader.serial != x.serial) return x.acquired != 0;
  return reader.epoch != x.epoch || reader.SameThreads(now);
}

constexpr int kFewWords = 8;

void RecordWrite(const Exec& x, const LineAccess& now, uint64_t line, const GlobalShadow& shadow) {
  LineAccess& writer = shadow.lines[line].writer;
  if (std::popcount(now.words) >= kFewWords) {
    if (InThisLaunch(x, writer.serial)) Spell(shadow, line, writer.words & ~now.words);
    writer = now;
    return;
  }
  writer.words &= ~now.words;
  for (uint32_t m = now.words; m != 0; m &= m - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(m));
    shadow.writers[line * kWordsPerLine + word] = {now.serial, now.epoch,
                                                   now.sync,   ThreadOf(now, word).value_or(0) & 1023u,
                                                   15u,        std::min(now.op, kUnknownOp) & kUnknownOp};
  }
}

/// Of several that write the same value none stands for all.
void ShareWords(const Exec& x, const LineAccess& now, uint64_t line, const GlobalShadow& shadow) {
  if (!InThisLaunch(x, shadow.lines[line].write_serial)) return;
  LineAccess& writer = shadow.lines[line].writer;
  const bool mine = writer.serial == x.serial && writer.SameThreads(now) && writer.epoch == x.epoch;
  if ((writer.words & now.words) != 0 && InThisLaunch(x, writer.serial) && !mine) {
    Spell(shadow, line, writer.words & ~now.words);
    writer.serial = 0;
  }
  for (uint32_t m = now.words & ~writer.words; m != 0; m &= m - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(m));
    WordWriter& each = shadow.writers[line * kWordsPerLine + word];
    const bool own = each.serial == x.serial && each.epoch == x.epoch && each.thread == ThreadOf(now, word);
    if (!own && InThisLaunch(x, each.serial)) each.serial = 0;
  }
}

template <size_t kWidth>
void GatherElement(const uint32_t* from, int stride, int lanes, std::byte* to, size_t step) {
  for (int k = 0; k < lanes; ++k) std::memcpy(to + static_cast<size_t>(k) * step, from + k * stride, kWidth);
}

/// The stored values of a dense access, lane by lane.
void GatherValues(const Exec& x, const Op& op, const Pattern& pattern, std::byte* to) {
  for (int i = 0; i < op.list_size; ++i) {
    const int stride = op.width == 8 || (op.variant & 1) ? 2 : 1;
    const uint32_t* from = x.Source(x.kernel->lists[op.list + static_cast<size_t>(i)]) + pattern.first * stride;
    std::byte* element = to + i * op.width;
    const size_t step = size_t{1} << pattern.shift;
    if (op.width == 8)
      GatherElement<8>(from, stride, pattern.count, element, step);
    else if (op.width == 4)
      GatherElement<4>(from, stride, pattern.count, element, step);
    else if (op.width == 2)
      GatherElement<2>(from, stride, pattern.count, element, step);
    else
      GatherElement<1>(from, stride, pattern.count, element, step);
  }
}

}  // namespace

bool StoreDense(Exec& x, const Op& op, uint32_t mask, const uint64_t* addresses, uint32_t bytes, const Range& range) {
  const Pattern pattern = PatternOf(mask, addresses, bytes);
  if (!pattern.dense || range.shadow == nullptr) return false;
  std::byte values[kLanes * 32];
  GatherValues(x, op, pattern, values);
  const GlobalShadow& shadow = *range.shadow;
  const uint64_t low = addresses[pattern.first] - shadow.base;
  if (!x.races || op.relaxed) {
    const size_t all = static_cast<size_t>(pattern.count) * bytes;
    std::memset(shadow.defined + low, 1, all);
    std::memcpy(reinterpret_cast<void*>(addresses[pattern.first]), values, all);
    return true;
  }
  return ForLines(pattern, shadow, [&](const LinePart& part, uint64_t at, uint64_t stop) {
    ShadowLine& line = shadow.lines[part.line];
    const LineLock lock(x, shadow.base + at);
    const LineAccess now = AccessOf(x, op, part, pattern, shadow);
    const LineWrite write{shadow.base + at, static_cast<uint32_t>(stop - at), values + (at - low)};
    if (ChangesNothing(write, shadow.defined + at)) {
      ShareWords(x, now, part.line, shadow);
      return true;
    }
    if (!NoOtherWrites(x, line, now) || !NoConflict(x, line.last, now) ||
        !NoConflict(x, shadow.foreign[part.line], now))
      return false;
    std::memset(shadow.defined + at, 1, write.bytes);
    std::memcpy(reinterpret_cast<void*>(write.address), write.value, write.bytes);
    RecordWrite(x, now, part.line, shadow);
    NoteWriter(x, line, now.words);
    return true;
  });
}

void CheckGlobalWrite(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes, const Range& range,
                      const std::byte* value, bool atomic) {
  if (range.shadow == nullptr) return;
  if (!x.races || atomic || op.relaxed) {
    std::memset(range.shadow->defined + (address - range.base), 1, bytes);
    return;
  }
  // Accesses are aligned, but those of bulk copies may cover many lines.
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t end = std::min((at / kShadowLineBytes + 1) * kShadowLineBytes, address + bytes);
    const std::byte* from = value == nullptr ? nullptr : value + (at - address);
    WriteLine(x, op, lane, {at, static_cast<uint32_t>(end - at), from}, *range.shadow);
    at = end;
  }
}

void NoteGlobalRead(Exec& x, const Op& op, int lane, uint64_t address, uint64_t bytes) {
  const Range* range = RangeOf(x, address);
  if (!x.track || range == nullptr || range->shadow == nullptr || bytes == 0) return;
  const uint8_t* defined = range->shadow->defined + (address - range->base);
  if (x.check && !range->shadow->complete && std::memchr(defined, 1, bytes) == nullptr)
    ReportUndefined(x, op, lane, address);
}

void NoteGlobalCopy(Exec& x, const Op& op, int lane, uint64_t address, uint64_t bytes) {
  NoteGlobalRead(x, op, lane, address, bytes);
  const Range* range = RangeOf(x, address);
  if (!x.races || range == nullptr || range->shadow == nullptr) return;
  const GlobalShadow& shadow = *range->shadow;
  uint64_t addresses[kLanes];
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t line = (at - shadow.base) / kShadowLineBytes;
    const uint64_t end = std::min(shadow.base + (line + 1) * kShadowLineBytes, address + bytes);
    const uint64_t first_word = (at - shadow.base) / 4 % kWordsPerLine;
    const uint64_t words = (end - (at & ~uint64_t{3}) + 3) / 4;
    addresses[lane] = at;
    ReadLine(x, op, {line, LowBits(words) << first_word, 1u << lane}, addresses, static_cast<uint32_t>(end - at), {},
             shadow);
    at = end;
  }
}

void NoteGlobalWrite(Exec& x, const Op& op, int lane, uint64_t address, uint64_t bytes, const std::byte* value,
                     bool atomic) {
  const Range* range = RangeOf(x, address);
  if (x.track && range != nullptr && bytes != 0)
    CheckGlobalWrite(x, op, lane, address, static_cast<uint32_t>(bytes), *range, value, atomic);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
