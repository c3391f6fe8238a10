// Shadow lines of global memory: the latest accesses to a line, and whether they are ordered before
// the current one.
#pragma once

#include <algorithm>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/synchronisation.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

inline constexpr uint32_t kWordsPerLine = kShadowLineBytes / 4;

class LineLock {
 public:
  LineLock(const BlockState& x, uint64_t address)
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

inline uint32_t OpIndex(const BlockState& x, const Op& op) {
  return static_cast<uint32_t>(&op - x.kernel->ops.data());
}

inline bool InThisLaunch(const BlockState& x, uint32_t serial) {
  return serial >= x.launch->first_serial;
}

/// Bits of the bytes of the word at `word` that an access covers.
inline uint32_t BytesOfWord(uint64_t word, uint64_t address, uint64_t bytes) {
  const uint64_t low = std::max(address, word) - word;
  const uint64_t high = std::min(address + bytes, word + 4) - word;
  return ((1u << (high - low)) - 1u) << low;
}

inline void ReportRace(BlockState& x, const Op& op, int lane, uint64_t address, const char* verb,
                       const char* earlier, uint32_t serial, uint32_t thread, uint32_t other_op) {
  if (ReportedBefore(x, op, Hazard::Kind::kRace)) return;
  const uint64_t block = serial - x.launch->first_serial;
  const bool known = other_op < x.kernel->ops.size();
  Hazard::Site other;
  if (known) other = SiteOf(x, x.kernel->ops[other_op], block, thread);
  other.block = block;
  other.thread = thread;
  const std::string line = known ? " at line " + std::to_string(other.line) : "";
  const std::string who = block == x.block ? " by thread " + std::to_string(thread) + line +
                                                 " with no barrier between"
                                           : " by block " + std::to_string(block) + ", thread " +
                                                 std::to_string(thread) + line +
                                                 " with nothing that orders them";
  Report(x, op, Hazard::Kind::kRace, lane,
         std::string(verb) + " " + Hex(address) + ", " + earlier + who,
         {Space::kGlobal, address, other});
}

/// True if a write, ordinary or strong, is not ordered before the current access by `thread`.
template <class Writer>
bool Unordered(const BlockState& x, const Writer& writer, uint32_t thread) {
  if (!InThisLaunch(x, writer.serial)) return false;
  if (writer.serial != x.global.serial)
    return !x.launch->clock->Ordered(writer.serial, writer.thread, writer.epoch, writer.sync,
                                     x.global.acquired);
  return writer.thread != thread && !Before(*x.warp, writer.thread, writer.epoch, writer.sync);
}

/// The thread that read a word of a line.
inline std::optional<uint32_t> ThreadOf(const LineAccess& reader, uint32_t word) {
  if (reader.origin == LineAccess::kIrregular) return std::nullopt;
  const int lane = (static_cast<int>(word) - reader.origin) >> reader.words_per_lane;
  return reader.warp * uint32_t{kLanes} + static_cast<uint32_t>(std::clamp(lane, 0, kLanes - 1));
}

/// True if an earlier read of a word is not ordered before the current write by `thread`. The reads
/// of other blocks count as ordered if this block has read any flag, because a read needs no fence
/// to be released.
inline bool Unordered(const BlockState& x, const LineAccess& reader, uint32_t word,
                      uint32_t thread) {
  if (!InThisLaunch(x, reader.serial) || ((reader.words >> word) & 1u) == 0) return false;
  if (reader.serial != x.global.serial) return !x.global.observed;
  if (reader.epoch < x.warp->before.all()) return false;
  const auto by = ThreadOf(reader, word);
  if (reader.warp == x.warp->index)
    return by && *by != thread && !Before(*x.warp, *by, reader.epoch, reader.sync);
  return by ? !x.warp->before.HasPart(*by, reader.epoch, reader.sync)
            : !x.warp->before.HasSome(reader.warp, reader.epoch);
}

inline WordWriter WriterOf(const GlobalShadow& shadow, uint64_t line, uint32_t word) {
  const LineAccess& writer = shadow.writes[line].writer;
  if (((writer.words >> word) & 1u) == 0) return shadow.writers[line * kWordsPerLine + word];
  return {writer.serial, writer.epoch,
          writer.sync,   ThreadOf(writer, word).value_or(0) & 1023u,
          15u,           std::min(writer.op, kUnknownOp) & kUnknownOp};
}

/// Replaces the line's common writer by a WordWriter for each of `words`.
inline void Spell(const GlobalShadow& shadow, uint64_t line, uint32_t words) {
  LineAccess& writer = shadow.writes[line].writer;
  for (uint32_t m = writer.words & words; m != 0; m &= m - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(m));
    shadow.writers[line * kWordsPerLine + word] = WriterOf(shadow, line, word);
  }
  writer.words &= ~words;
}

/// True if every byte was written. The loop has no early exit, so that it is vectorised.
inline bool AllDefined(const uint8_t* defined, size_t bytes) {
  uint8_t missing = 0;
  for (size_t i = 0; i < bytes; ++i) missing |= static_cast<uint8_t>(defined[i] == 0);
  return missing == 0;
}

// ---- accesses of a warp
/// How the addresses of an access's lanes are related.
struct Pattern {
  bool regular = false;  ///< lane l accesses the address of lane 0 plus l * bytes
  bool dense = false;    ///< regular, with no gap between the first and the last lane
  int first = 0;
  int count = 0;
  uint64_t lane0 = 0;
  int shift = 0;  ///< log2 of the bytes of a lane

  uint64_t Bytes(int lanes) const { return static_cast<uint64_t>(lanes) << shift; }
};
inline Pattern PatternOf(uint32_t mask, const uint64_t* addresses, uint32_t bytes, Layout layout) {
  if (bytes < 4) return {};
  const int first = std::countr_zero(mask);
  const int shift = std::countr_zero(bytes);
  if (layout == Layout::kDense) return {true, true, 0, kLanes, addresses[0], shift};
  const uint64_t lane0 = addresses[first] - (static_cast<uint64_t>(first) << shift);
  uint64_t different = 0;
  ForLanes(mask, [&](int l) {
    different |= addresses[l] ^ (lane0 + (static_cast<uint64_t>(l) << shift));
  });
  const uint64_t lanes = mask >> first;
  return {different == 0, different == 0 && (lanes & (lanes + 1)) == 0,
          first,          std::popcount(mask),
          lane0,          shift};
}

/// The part of an access that is in one line.
struct LinePart {
  uint64_t line = ~uint64_t{0};
  uint32_t words = 0;
  uint32_t lanes = 0;
};

inline LineAccess AccessOf(const BlockState& x, const Op& op, const LinePart& part,
                           const Pattern& pattern, const GlobalShadow& shadow) {
  LineAccess access{x.global.serial,
                    x.shadow.epoch,
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

inline uint32_t LowBits(uint64_t count) { return count >= 32 ? ~0u : (1u << count) - 1; }

/// Calls `f` for each line of a dense access, until one call returns false.
template <class F>
inline bool ForLines(const Pattern& pattern, const GlobalShadow& shadow, F&& f) {
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

/// True if strong writes changed the line in this launch.
inline bool HasStrongWrites(const BlockState& x, const GlobalShadow& shadow, uint64_t line) {
  return InThisLaunch(x, shadow.lines[line].write_serial) &&
         shadow.writes[line].strong == x.launch->first_serial;
}

/// Notes that the block wrote words of a line.
void NoteWriter(const BlockState& x, uint64_t line, uint32_t words, const GlobalShadow& shadow);
/// False after reporting that an earlier read of a word races with a write by `lane`.
bool CheckEarlierReads(BlockState& x, const Op& op, int lane, uint64_t word, const char* verb,
                       const GlobalShadow& shadow);

// Strong accesses: strong_global.cpp.
/// Checks one strong write that lies within a line; `value` as in CheckGlobalWrite, or nullptr of
/// an atomic.
void WriteStrongly(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes,
                   const std::byte* value, const GlobalShadow& shadow);
/// Checks strong loads of flags, which acquire.
void ReadFlags(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
               uint32_t bytes, const GlobalShadow& shadow);
/// False after reporting that an earlier strong write of a word races with an ordinary access.
bool CheckAgainstStrong(BlockState& x, const Op& op, int lane, uint64_t word, bool write,
                        const GlobalShadow& shadow);
/// False after reporting that the kernel wrote the word that a load through the read-only path
/// reads.
bool CheckReadOnly(BlockState& x, const Op& op, int lane, uint64_t word,
                   const GlobalShadow& shadow);

/// True if no write to the line can be in conflict with an access by this block.
inline bool NoOtherWrites(const BlockState& x, const GlobalShadow& shadow, uint64_t line,
                          const LineAccess& now) {
  const uint32_t serial = shadow.lines[line].write_serial;
  if (!InThisLaunch(x, serial)) return true;
  const LineWrites& writes = shadow.writes[line];
  if (serial != x.global.serial || writes.several == x.launch->first_serial) return false;
  const LineAccess& writer = writes.writer;
  return writes.epoch < x.warp->before.all() || (writes.words & now.words) == 0 ||
         (writer.serial == x.global.serial && writer.SameThreads(now) &&
          (now.words & ~writer.words) == 0);
}

/// True if all bytes of a part's words were written. The part begins at `at`.
inline bool AllDefined(const GlobalShadow& shadow, const LinePart& part, uint64_t at) {
  uint32_t& known = shadow.lines[part.line].defined;
  if (shadow.complete || (part.words & ~known) == 0) return true;
  if (!AllDefined(shadow.defined + at, size_t{4} * static_cast<size_t>(std::popcount(part.words))))
    return false;
  known |= part.words;
  return true;
}
/// Marks the words of a part as written.
inline void Define(const GlobalShadow& shadow, const LinePart& part, uint64_t at) {
  uint32_t& known = shadow.lines[part.line].defined;
  if ((part.words & ~known) == 0) return;
  std::memset(shadow.defined + at, 1, size_t{4} * static_cast<size_t>(std::popcount(part.words)));
  known |= part.words;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
