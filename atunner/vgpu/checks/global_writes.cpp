// Checks of stores to global memory: conflicts with earlier accesses, and the shadow that they
// leave. global_access.cpp says which accesses are ordered.
#include "atunner/vgpu/checks/global_lines.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// True if the load that read the word at `word` does not use it.
bool DropsWord(const BlockState& x, const LineAccess& reader, uint64_t word) {
  if (reader.op >= x.kernel->ops.size()) return false;
  const Op& load = x.kernel->ops[reader.op];
  // a power of two, and loads are aligned
  const uint64_t bytes = uint64_t{load.width} * load.list_size;
  return bytes > 4 && load.list_written && Dropped(*x.kernel, load, word & (bytes - 1), 4);
}

bool IsMine(const BlockState& x, const WordWriter& writer, std::optional<uint32_t> thread) {
  return writer.serial == x.global.serial && writer.thread == thread &&
         writer.epoch == x.shadow.epoch;
}

/// If several threads write the same value, no single writer is stored.
void ShareWord(const BlockState& x, WordWriter& writer, std::optional<uint32_t> thread) {
  if (InThisLaunch(x, writer.serial) && !IsMine(x, writer, thread)) writer.serial = 0;
}

/// Notes the writer of a word that nobody wrote and that keeps its value: atomics race with it.
void NoteIdle(BlockState& x, const Op& op, uint32_t thread, WordWriter& writer) {
  if (InThisLaunch(x, writer.serial)) return;
  writer = {x.global.serial,
            x.shadow.epoch,
            x.warp->sync_epoch,
            thread & 1023u,
            0u,
            std::min(OpIndex(x, op), kUnknownOp) & kUnknownOp};
}

/// False after reporting a race of a write to one word.
bool CheckWordWrite(BlockState& x, const Op& op, int lane, uint64_t word, uint32_t bytes,
                    const WordWriter& writer, const GlobalShadow& shadow) {
  const uint32_t thread = x.ThreadOf(lane);
  if ((writer.bytes & bytes) != 0 && Unordered(x, writer, thread)) {
    ReportRace(x, op, lane, word, "writes", "written", writer.serial, writer.thread, writer.op);
    return false;
  }
  if (bytes != 0xf) return true;  // the bytes of a word may belong to different threads
  if (HasStrongWrites(x, shadow, (word - shadow.base) / kShadowLineBytes) &&
      !CheckAgainstStrong(x, op, lane, word, true, shadow))
    return false;
  return CheckEarlierReads(x, op, lane, word, "writes", shadow);
}

/// An access within one line.
struct LineWrite {
  uint64_t address = 0;
  uint32_t bytes = 0;
  const std::byte* value = nullptr;
};

/// True if a store writes the values that are there already.
bool ChangesNothing(const LineWrite& write, bool defined) {
  return write.value != nullptr && defined &&
         std::memcmp(reinterpret_cast<const void*>(write.address), write.value, write.bytes) == 0;
}

void WriteLine(BlockState& x, const Op& op, int lane, const LineWrite& write,
               const GlobalShadow& shadow) {
  const uint64_t index = (write.address - shadow.base) / kShadowLineBytes;
  const LineLock lock(x, write.address);
  const uint64_t first_word = (write.address - shadow.base) / 4 % kWordsPerLine;
  const uint64_t past_word = ((write.address - shadow.base) % kShadowLineBytes + write.bytes + 3) /
                             4;
  const uint32_t words = LowBits(past_word) & ~LowBits(first_word);
  Spell(shadow, index, words);
  uint8_t* defined = shadow.defined + (write.address - shadow.base);
  const bool same_value = ChangesNothing(write, AllDefined(defined, write.bytes));
  std::memset(defined, 1, write.bytes);
  if (write.value != nullptr)
    std::memcpy(reinterpret_cast<void*>(write.address), write.value, write.bytes);
  const uint32_t thread = x.ThreadOf(lane);
  bool clean = true;
  for (uint64_t word = write.address & ~uint64_t{3}; word < write.address + write.bytes;
       word += 4) {
    WordWriter& writer = shadow.writers[(word - shadow.base) / 4];
    const uint32_t covered = BytesOfWord(word, write.address, write.bytes);
    if (same_value) {
      ShareWord(x, writer, thread);
      if (UsesAtomics(x)) NoteIdle(x, op, thread, writer);
      continue;
    }
    clean = clean && CheckWordWrite(x, op, lane, word, covered, writer, shadow);
    writer = {x.global.serial,
              x.shadow.epoch,
              x.warp->sync_epoch,
              thread & 1023u,
              (IsMine(x, writer, thread) ? writer.bytes | covered : covered) & 15u,
              std::min(OpIndex(x, op), kUnknownOp) & kUnknownOp};
  }
  if (!same_value) NoteWriter(x, index, words, shadow);
}

// ---- dense writes
/// True if an earlier read cannot be in conflict with a write.
bool NoConflict(const BlockState& x, const LineAccess& reader, const LineAccess& now) {
  if (!InThisLaunch(x, reader.serial) || (reader.words & now.words) == 0) return true;
  if (reader.serial != x.global.serial) return x.global.observed;
  return reader.epoch < x.warp->before.all() || reader.SameThreads(now);
}

/// True if no earlier access to the line can be in conflict with a write.
bool NoConflict(const BlockState& x, uint64_t line, const LineAccess& now,
                const GlobalShadow& shadow) {
  return NoOtherWrites(x, shadow, line, now) && NoConflict(x, shadow.lines[line].last, now) &&
         NoConflict(x, shadow.foreign[line], now);
}

constexpr int kFewWords = 8;

void RecordWrite(const BlockState& x, const LineAccess& now, uint64_t line,
                 const GlobalShadow& shadow) {
  LineAccess& writer = shadow.writes[line].writer;
  if (std::popcount(now.words) >= kFewWords) {
    if (InThisLaunch(x, writer.serial)) Spell(shadow, line, writer.words & ~now.words);
    writer = now;
    return;
  }
  writer.words &= ~now.words;
  for (uint32_t m = now.words; m != 0; m &= m - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(m));
    shadow.writers[line * kWordsPerLine + word] = {
        now.serial, now.epoch,
        now.sync,   ThreadOf(now, word).value_or(0) & 1023u,
        15u,        std::min(now.op, kUnknownOp) & kUnknownOp};
  }
}

void ShareWords(const BlockState& x, const LineAccess& now, uint64_t line,
                const GlobalShadow& shadow) {
  if (!InThisLaunch(x, shadow.lines[line].write_serial)) return;
  LineAccess& writer = shadow.writes[line].writer;
  const bool mine = writer.serial == x.global.serial && writer.SameThreads(now) &&
                    writer.epoch == x.shadow.epoch;
  if ((writer.words & now.words) != 0 && InThisLaunch(x, writer.serial) && !mine) {
    Spell(shadow, line, writer.words & ~now.words);
    writer.serial = 0;
  }
  for (uint32_t m = now.words & ~writer.words; m != 0; m &= m - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(m));
    ShareWord(x, shadow.writers[line * kWordsPerLine + word], ThreadOf(now, word));
  }
}

void NoteIdleWords(BlockState& x, const Op& op, const LineAccess& now, uint64_t line,
                   const GlobalShadow& shadow) {
  const LineAccess& writer = shadow.writes[line].writer;
  const uint32_t spelt = InThisLaunch(x, writer.serial) ? now.words & ~writer.words : now.words;
  for (uint32_t m = spelt; m != 0; m &= m - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(m));
    NoteIdle(x, op, ThreadOf(now, word).value_or(0), shadow.writers[line * kWordsPerLine + word]);
  }
}

template <size_t kWidth>
void GatherElement(const uint32_t* from, int stride, int lanes, std::byte* to, size_t step) {
  for (int k = 0; k < lanes; ++k)
    std::memcpy(to + static_cast<size_t>(k) * step, from + k * stride, kWidth);
}

/// The values of a dense store in the order of the lanes: the register itself, or gathered in
/// `room`.
const std::byte* StoredValues(const BlockState& x, const Op& op, const Pattern& pattern,
                              std::byte* room) {
  const int stride = op.width == 8 || (op.variant & 1) ? 2 : 1;
  for (int i = 0; i < op.list_size; ++i) {
    const uint32_t* from = x.Source(x.kernel->lists[op.list + static_cast<size_t>(i)]) +
                           pattern.first * stride;
    if (op.list_size == 1 && op.width == 4 * stride)
      return reinterpret_cast<const std::byte*>(from);
    std::byte* element = room + i * op.width;
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
  return room;
}

// ---- words at any addresses
/// Stores the words that the lanes of a part write to its line. False if another access may be in
/// conflict.
bool WriteWords(BlockState& x, const Op& op, const LinePart& part, const uint64_t* addresses,
                const GlobalShadow& shadow) {
  const LineLock lock(x, shadow.base + part.line * kShadowLineBytes);
  const LineAccess now = AccessOf(x, op, part, {}, shadow);
  if (!NoConflict(x, part.line, now, shadow)) return false;
  Spell(shadow, part.line, part.words);
  uint32_t changed = 0;
  ForLanes(part.lanes, [&](int l) {
    uint32_t value[8];
    for (uint32_t i = 0; i < op.list_size; ++i)
      value[i] = x.Source(x.kernel->lists[op.list + i])[l];
    const LineWrite write{addresses[l], 4u * op.list_size,
                          reinterpret_cast<const std::byte*>(value)};
    const uint64_t word = (addresses[l] - shadow.base) / 4;
    const bool same_value = ChangesNothing(write,
                                           AllDefined(shadow.defined + 4 * word, write.bytes));
    const WordWriter writer{x.global.serial,
                            x.shadow.epoch,
                            x.warp->sync_epoch,
                            x.ThreadOf(l) & 1023u,
                            15u,
                            std::min(now.op, kUnknownOp) & kUnknownOp};
    for (uint32_t i = 0; i < op.list_size; ++i) {
      WordWriter& last = shadow.writers[word + i];
      if (!same_value) {
        last = writer;
        continue;
      }
      ShareWord(x, last, writer.thread);
      if (UsesAtomics(x)) NoteIdle(x, op, writer.thread, last);
    }
    if (same_value) return;
    std::memset(shadow.defined + 4 * word, 1, write.bytes);
    std::memcpy(reinterpret_cast<void*>(write.address), write.value, write.bytes);
    changed |= LowBits(op.list_size) << (word % kWordsPerLine);
  });
  if (changed != 0) NoteWriter(x, part.line, changed, shadow);
  return true;
}

}  // namespace

void NoteWriter(const BlockState& x, uint64_t line, uint32_t words, const GlobalShadow& shadow) {
  uint32_t& serial = shadow.lines[line].write_serial;
  LineWrites& writes = shadow.writes[line];
  const bool goes_on = serial == x.global.serial && writes.epoch >= x.shadow.common_epoch;
  writes.words = (goes_on ? writes.words : 0) | words;
  if (serial != x.global.serial && InThisLaunch(x, serial)) writes.several = x.launch->first_serial;
  serial = x.global.serial;
  writes.epoch = x.shadow.epoch;
}

bool CheckEarlierReads(BlockState& x, const Op& op, int lane, uint64_t word, const char* verb,
                       const GlobalShadow& shadow) {
  const uint64_t line = (word - shadow.base) / kShadowLineBytes;
  const auto at = static_cast<uint32_t>((word - shadow.base) / 4 % kWordsPerLine);
  for (const LineAccess* reader : {&shadow.lines[line].last, &shadow.foreign[line]}) {
    if (!Unordered(x, *reader, at, x.ThreadOf(lane)) || DropsWord(x, *reader, word)) continue;
    const uint32_t by = ThreadOf(*reader, at).value_or(uint32_t{reader->warp} * kLanes);
    ReportRace(x, op, lane, word, verb, "read", reader->serial, by, reader->op);
    return false;
  }
  return true;
}

bool StoreDense(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                uint32_t bytes, const Range& range, Layout layout) {
  const Pattern pattern = PatternOf(mask, addresses, bytes, layout);
  if (!pattern.dense || range.shadow == nullptr) return false;
  std::byte room[kLanes * 32];
  const std::byte* values = StoredValues(x, op, pattern, room);
  const GlobalShadow& shadow = *range.shadow;
  const uint64_t low = addresses[pattern.first] - shadow.base;
  if (x.checks.global_races && op.relaxed) return false;
  if (!x.checks.global_races) {
    const size_t all = static_cast<size_t>(pattern.count) * bytes;
    std::memset(shadow.defined + low, 1, all);
    std::memcpy(reinterpret_cast<void*>(addresses[pattern.first]), values, all);
    return true;
  }
  return ForLines(pattern, shadow, [&](const LinePart& part, uint64_t at, uint64_t stop) {
    const LineLock lock(x, shadow.base + at);
    const LineAccess now = AccessOf(x, op, part, pattern, shadow);
    const LineWrite write{shadow.base + at, static_cast<uint32_t>(stop - at), values + (at - low)};
    if (ChangesNothing(write, AllDefined(shadow, part, at))) {
      ShareWords(x, now, part.line, shadow);
      if (UsesAtomics(x)) NoteIdleWords(x, op, now, part.line, shadow);
      return true;
    }
    if (!NoConflict(x, part.line, now, shadow)) return false;
    Define(shadow, part, at);
    std::memcpy(reinterpret_cast<void*>(write.address), write.value, write.bytes);
    RecordWrite(x, now, part.line, shadow);
    NoteWriter(x, part.line, now.words, shadow);
    return true;
  });
}

bool StoreApart(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                uint32_t bytes, const Range& range) {
  const bool words = op.width == 4 && bytes == 4u * op.list_size && bytes <= 32 &&
                     (op.variant & 1) == 0;
  if (!words || !x.checks.global_races || op.relaxed || range.shadow == nullptr) return false;
  const GlobalShadow& shadow = *range.shadow;
  LinePart part;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t offset = addresses[l] - shadow.base;
    const uint64_t line = offset / kShadowLineBytes;
    const uint32_t own = LowBits(op.list_size) << (offset / 4 % kWordsPerLine);
    if (line != part.line || (own & part.words) != 0) {
      if (part.lanes != 0 && !WriteWords(x, op, part, addresses, shadow)) return false;
      part = {line, 0, 0};
    }
    part.words |= own;
    part.lanes |= 1u << l;
  }
  return WriteWords(x, op, part, addresses, shadow);
}

void CheckGlobalWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes,
                      const Range& range, const std::byte* value, bool atomic) {
  if (range.shadow == nullptr) return;
  if (!x.checks.global_races) {
    std::memset(range.shadow->defined + (address - range.base), 1, bytes);
    return;
  }
  // Accesses are aligned and within one line, except those of bulk copies.
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t end = std::min((at / kShadowLineBytes + 1) * kShadowLineBytes, address + bytes);
    const std::byte* from = value == nullptr ? nullptr : value + (at - address);
    if (atomic || op.relaxed)
      WriteStrongly(x, op, lane, at, static_cast<uint32_t>(end - at), atomic ? nullptr : from,
                    *range.shadow);
    else
      WriteLine(x, op, lane, {at, static_cast<uint32_t>(end - at), from}, *range.shadow);
    at = end;
  }
}

void NoteGlobalWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                     const std::byte* value, bool atomic) {
  if (x.launch->options.log_writes) x.record.written.Add(address, address + bytes);
  const Range* range = RangeOf(x.allocations, address);
  if (x.checks.track_stores && range != nullptr && bytes != 0)
    CheckGlobalWrite(x, op, lane, address, static_cast<uint32_t>(bytes), *range, value, atomic);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
