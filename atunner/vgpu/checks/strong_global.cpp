// Strong accesses to global memory: atomics, volatile and relaxed loads and stores. They do not
// race with each other, but with ordinary accesses that nothing orders. synchronisation.h says what
// they order.
#include "atunner/vgpu/checks/global_lines.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

StrongWriter& StrongAt(const GlobalShadow& shadow, uint64_t word) {
  return shadow.strong[(word - shadow.base) / 4];
}

/// A thread of the block has read what the last strong write left.
void Observe(BlockState& x, const StrongWriter& last) {
  if (!InThisLaunch(x, last.serial)) return;
  x.global.acquired = std::max(x.global.acquired, last.released);
  x.global.observed |= last.serial != x.global.serial;
}

const char* VerbOf(const Op& op) { return op.relaxed ? "writes" : "atomically updates"; }

/// False after reporting an atomic of block scope where another block's atomics are.
bool CheckScope(BlockState& x, const Op& op, int lane, uint64_t word, const StrongWriter& last) {
  if (!InThisLaunch(x, last.serial) || last.serial == x.global.serial ||
      (last.of_block == 0 && !op.order.of_block) || !Unordered(x, last, x.ThreadOf(lane)))
    return true;
  ReportRace(
      x, op, lane, word, VerbOf(op),
      op.order.of_block ? "with the scope of its block, updated" : "updated with block scope",
      last.serial, last.thread, last.op);
  return false;
}

void NoteStrong(BlockState& x, const Op& op, int lane, StrongWriter& last) {
  const uint32_t thread = x.ThreadOf(lane);
  const bool live = InThisLaunch(x, last.serial);
  const bool returns = !op.relaxed && op.order.polls;
  const bool several = live && !returns && last.serial == x.global.serial &&
                       (last.several != 0 || last.thread != thread) &&
                       !Before(*x.warp, last.thread, last.epoch, last.sync);
  const uint64_t released = std::max(live ? last.released : 0, ReleasedTime(x));
  last = {x.global.serial,
          x.shadow.epoch,
          x.warp->sync_epoch,
          0,
          released,
          thread & 1023u,
          several ? 1u : 0u,
          op.order.of_block ? 1u : 0u,
          std::min(OpIndex(x, op), kUnknownOp) & kUnknownOp};
}

/// Checks and notes the strong write of a word; `whole`: of all its bytes.
void WriteWordStrongly(BlockState& x, const Op& op, int lane, uint64_t word, uint32_t covered,
                       const GlobalShadow& shadow) {
  StrongWriter& last = StrongAt(shadow, word);
  const WordWriter& writer = shadow.writers[(word - shadow.base) / 4];
  // Reads of other blocks may have come after the write that this atomic observes.
  bool clean = covered != 0xf || CheckEarlierReads(x, op, lane, word, VerbOf(op), shadow);
  if (!op.relaxed && op.order.polls) Observe(x, last), AcquireFlag(x, word);
  const bool overlaps = writer.bytes == 0 || (writer.bytes & covered) != 0;
  if (clean && overlaps && Unordered(x, writer, x.ThreadOf(lane))) {
    ReportRace(x, op, lane, word, VerbOf(op), "written", writer.serial, writer.thread, writer.op);
    clean = false;
  }
  if (clean) CheckScope(x, op, lane, word, last);
  NoteStrong(x, op, lane, last);
  ReleaseFlag(x, 1u << lane, word);
}

}  // namespace

void WriteStrongly(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes,
                   const std::byte* value, const GlobalShadow& shadow) {
  const uint64_t line = (address - shadow.base) / kShadowLineBytes;
  const LineLock lock(x, address);
  uint8_t* defined = shadow.defined + (address - shadow.base);
  const bool same_value = value != nullptr && AllDefined(defined, bytes) &&
                          std::memcmp(reinterpret_cast<const void*>(address), value, bytes) == 0;
  std::memset(defined, 1, bytes);
  uint32_t words = 0;
  for (uint64_t word = address & ~uint64_t{3}; word < address + bytes; word += 4)
    words |= 1u << ((word - shadow.base) / 4 % kWordsPerLine);
  Spell(shadow, line, words);
  for (uint64_t word = address & ~uint64_t{3}; word < address + bytes; word += 4) {
    StrongWriter& last = StrongAt(shadow, word);
    const bool agrees = same_value && InThisLaunch(x, last.serial) &&
                        Unordered(x, last, x.ThreadOf(lane));
    if (agrees)
      last.serial = 0;  // several wrote the same: none is the writer
    else if (!same_value)
      WriteWordStrongly(x, op, lane, word, BytesOfWord(word, address, bytes), shadow);
    else
      ReleaseFlag(x, 1u << lane, word);
  }
  if (same_value) return;
  shadow.writes[line].strong = x.launch->first_serial;
  NoteWriter(x, line, words, shadow);
}

void ReleaseFlags(BlockState& x, int lane, uint64_t address, uint64_t bytes) {
  for (uint64_t word = address & ~uint64_t{3}; word < address + bytes; word += 4)
    ReleaseFlag(x, 1u << lane, word);
}

void ObserveFlag(BlockState& x, uint64_t address, uint64_t bytes) {
  if (HasBlockFlags(x)) {
    for (uint64_t word = address & ~uint64_t{3}; word < address + bytes; word += 4)
      AcquireFlag(x, word);
  }
  const Range* range = x.checks.global_races ? RangeOf(x.allocations, address) : nullptr;
  if (range == nullptr || range->shadow == nullptr) return;
  const GlobalShadow& shadow = *range->shadow;
  const LineLock lock(x, address);
  for (uint64_t word = address & ~uint64_t{3}; word < address + bytes; word += 4) {
    if (!HasStrongWrites(x, shadow, (word - shadow.base) / kShadowLineBytes)) continue;
    StrongWriter& last = StrongAt(shadow, word);
    Observe(x, last);
    AcquireFlag(x, word);
  }
}

void ReadFlags(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
               uint32_t bytes, const GlobalShadow& shadow) {
  ForLanes(mask, [&](int l) {
    const LineLock lock(x, addresses[l]);
    for (uint64_t word = addresses[l] & ~uint64_t{3}; word < addresses[l] + bytes; word += 4) {
      const uint64_t line = (word - shadow.base) / kShadowLineBytes;
      if (!InThisLaunch(x, shadow.lines[line].write_serial)) continue;
      if (HasStrongWrites(x, shadow, line)) {
        StrongWriter& last = StrongAt(shadow, word);
        Observe(x, last);
        last.observer = x.global.serial;
      }
      AcquireFlag(x, word);
      const WordWriter writer = WriterOf(
          shadow, line, static_cast<uint32_t>((word - shadow.base) / 4 % kWordsPerLine));
      if ((writer.bytes & BytesOfWord(word, addresses[l], bytes)) == 0 ||
          !Unordered(x, writer, x.ThreadOf(l)))
        continue;
      ReportRace(x, op, l, addresses[l], "reads as a flag", "written by an ordinary store",
                 writer.serial, writer.thread, writer.op);
    }
  });
}

bool CheckAgainstStrong(BlockState& x, const Op& op, int lane, uint64_t word, bool write,
                        const GlobalShadow& shadow) {
  const StrongWriter& last = StrongAt(shadow, word);
  const uint32_t thread = x.ThreadOf(lane);
  if (!InThisLaunch(x, last.serial) || last.observer == x.global.serial) return true;
  const bool own = last.serial == x.global.serial;
  if (own && last.thread == thread && last.several != 0) {
    if (Before(*x.warp, last.thread, last.epoch, last.sync)) return true;
  } else if (!Unordered(x, last, thread)) {
    return true;
  }
  if (!write && Peeks(op)) return true;
  ReportRace(x, op, lane, word, write ? "writes" : "reads", "updated", last.serial, last.thread,
             last.op);
  return false;
}

bool CheckReadOnly(BlockState& x, const Op& op, int lane, uint64_t word,
                   const GlobalShadow& shadow) {
  const uint64_t line = (word - shadow.base) / kShadowLineBytes;
  const WordWriter writer = WriterOf(
      shadow, line, static_cast<uint32_t>((word - shadow.base) / 4 % kWordsPerLine));
  const StrongWriter& strong = StrongAt(shadow, word);
  const bool updated = HasStrongWrites(x, shadow, line) && InThisLaunch(x, strong.serial);
  if (!updated && (writer.bytes == 0 || !InThisLaunch(x, writer.serial))) return true;
  const uint32_t serial = updated ? strong.serial : writer.serial;
  const uint32_t thread = updated ? strong.thread : writer.thread;
  const uint32_t by = updated ? strong.op : writer.op;
  if (ReportedBefore(x, op, Hazard::Kind::kRace)) return false;
  Hazard::Site other;
  if (by < x.kernel->ops.size())
    other = SiteOf(x, x.kernel->ops[by], serial - x.launch->first_serial, thread);
  Report(x, op, Hazard::Kind::kRace, lane,
         "reads " + Hex(word) +
             " through the read-only path (ld.global.nc), written in the same kernel by block " +
             std::to_string(serial - x.launch->first_serial) + ", thread " +
             std::to_string(thread) + " at line " + std::to_string(other.line),
         {Space::kGlobal, word, other});
  return false;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
