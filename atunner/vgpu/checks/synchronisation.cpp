#include "atunner/vgpu/checks/synchronisation.h"

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/cluster_shadow.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

HappensBefore ReleasedBy(const BlockState& x, uint32_t lanes) {
  HappensBefore released = x.warp->before;
  released.Include({x.warp->index, x.shadow.epoch + 1, x.warp->sync_epoch, lanes});
  return released;
}

void MeetAll(BlockState& x) {
  x.shadow.common_epoch = x.shadow.epoch;
  x.shadow.released.clear();
  for (Warp& warp : x.warps) {
    warp.before.Reset(x.shadow.epoch);
    warp.fence = {};
  }
}

void NoteFence(BlockState& x, uint32_t lanes, bool of_block) {
  if (!x.checks.any) return;
  const Warp& warp = *x.warp;
  if (x.checks.global_races && !of_block) {
    const uint32_t thread = x.ThreadOf(std::countr_zero(lanes));
    x.launch->clock->Add(x.global.serial,
                         {0, thread, x.shadow.epoch, warp.sync_epoch, ReleasedBy(x, lanes)});
    x.global.fenced = true;
  }
  x.warp->fence = {x.shadow.epoch, warp.sync_epoch, lanes};
  ++x.shadow.epoch;
}

void OrderCluster(BlockState& x) {
  x.cluster.synchronised_epoch = ++x.shadow.epoch;
  PropagateToCluster(x);
}

void ReleaseFlag(BlockState& x, uint32_t lanes, uint64_t flag) {
  const WarpFence& fence = x.warp->fence;
  if (fence.epoch == 0) return;
  // A warp-level synchronisation behind the fence: one lane writes the flag of all.
  const uint32_t released = fence.sync == x.warp->sync_epoch ? fence.lanes & lanes : fence.lanes;
  HappensBefore& by_flag = x.shadow.released[flag];
  by_flag.Include(x.warp->before);
  if (released != 0) by_flag.Include({x.warp->index, fence.epoch + 1, fence.sync, released});
}

void AcquireFlag(BlockState& x, uint64_t flag) {
  if (x.shadow.released.empty()) return;
  const auto at = x.shadow.released.find(flag);
  if (at != x.shadow.released.end()) x.warp->before.Include(at->second);
}

uint64_t ReleasedTime(const BlockState& x) {
  if (!x.global.fenced) return 0;
  return x.launch->clock->LastFence(x.global.serial, x.warp->index, x.warp->before);
}

void OrderPeers(CoScheduledBlocks& peers) {
  const bool cluster = peers.members.front()->launch->cluster.Count() > 1;
  for (BlockState* member : peers.members) {
    if (cluster && member->checks.global_races) {
      HappensBefore all;
      all.Include(member->shadow.epoch + 1);
      member->launch->clock->Add(member->global.serial,
                                 {0, RaceClock::kWholeBlock, member->shadow.epoch, 0, all});
      member->global.fenced = true;
    }
    member->cluster.synchronised_epoch = ++member->shadow.epoch;
  }
  for (BlockState* member : peers.members) {
    if (!cluster || !member->checks.global_races) continue;
    member->global.acquired = member->launch->clock->Now();
    member->global.observed = true;
  }
}

// ---- strong accesses to shared memory
namespace {

StrongShadow& StrongAt(RaceShadow& shadow, uint64_t word) {
  if (shadow.strong.empty()) shadow.strong.resize(shadow.words.size());
  return shadow.strong[word];
}

std::string By(uint32_t thread, uint32_t line) {
  return " by thread " + std::to_string(thread) + " at line " + std::to_string(line) +
         " with no barrier between";
}

bool Conflict(BlockState& x, const Op& op, int lane, uint64_t word, const std::string& what,
              uint16_t thread, uint32_t line) {
  Hazard::Site other = SiteOf(x, op, x.block, thread);
  other.line = line;
  Report(x, op, Hazard::Kind::kRace, lane, what, {Space::kShared, word * 4, other});
  return false;
}

const char* StrongVerb(const Op& op) {
  return op.relaxed ? "writes shared address " : "atomically updates shared address ";
}

}  // namespace

bool CheckStrongWrite(BlockState& x, const Op& op, int lane, uint64_t word, bool returns) {
  SharedShadow& s = x.shadow.words[word];
  const Warp& warp = *x.warp;
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  if (s.writer < kProductAccessor && WriteUnordered(x, s, thread))
    return Conflict(x, op, lane, word,
                    StrongVerb(op) + Hex(word * 4) + ", written" + By(s.writer, s.write_line),
                    s.writer, s.write_line);
  const bool polled = op.relaxed && s.read_epoch < warp.polled_epoch;
  if (!polled && s.last_reader < kProductAccessor && ReadUnordered(x, s, thread))
    return Conflict(x, op, lane, word,
                    StrongVerb(op) + Hex(word * 4) + ", read" + By(s.last_reader, s.read_line),
                    s.last_reader, s.read_line);
  StrongShadow& last = StrongAt(x.shadow, word);
  const bool known = last.epoch == 0 || Before(warp, last.thread, last.epoch, last.sync);
  const bool several = !returns && !known && (last.several || last.thread != thread);
  last = {x.shadow.epoch, warp.sync_epoch, LineOf(x, op), thread, kNoAccessor, several};
  s.in_flight |= kStrongWrite;
  return true;
}

void AgreeOnWord(BlockState& x, int lane, uint64_t word) {
  if ((x.shadow.words[word].in_flight & kStrongWrite) == 0) return;
  StrongShadow& last = x.shadow.strong[word];
  if (last.thread == x.ThreadOf(lane) || Before(*x.warp, last.thread, last.epoch, last.sync))
    return;
  last = {};
  x.shadow.words[word].in_flight &= static_cast<uint8_t>(~kStrongWrite);
}

bool CheckFlagRead(BlockState& x, const Op& op, int lane, uint64_t word) {
  AcquireFlag(x, FlagOf(word));
  SharedShadow& s = x.shadow.words[word];
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  if ((s.in_flight & kStrongWrite) != 0) {
    StrongShadow& last = x.shadow.strong[word];
    last.observer = static_cast<uint16_t>(x.warp->index);
    x.warp->polled_epoch = std::max(x.warp->polled_epoch, last.epoch + 1);
  } else if (op.width < 4) {  // strong writes of parts of words are not recorded
    x.warp->polled_epoch = x.shadow.epoch + 1;
  }
  if (s.writer >= kProductAccessor || !WriteUnordered(x, s, thread)) return true;
  return Conflict(x, op, lane, word,
                  "reads shared address " + Hex(word * 4) + " as a flag, written" +
                      By(s.writer, s.write_line) + ", by an ordinary store",
                  s.writer, s.write_line);
}

bool CheckAgainstStrong(BlockState& x, const Op& op, int lane, uint64_t word, bool write) {
  SharedShadow& s = x.shadow.words[word];
  const StrongShadow& last = x.shadow.strong[word];
  if (last.epoch < x.shadow.common_epoch) {
    s.in_flight &= static_cast<uint8_t>(~kStrongWrite);
    return true;
  }
  const bool own = last.thread == x.ThreadOf(lane) && !last.several;
  const bool polled = op.relaxed && last.epoch < x.warp->polled_epoch;
  if (own || polled || last.observer == x.warp->index ||
      Before(*x.warp, last.thread, last.epoch, last.sync) || (!write && Peeks(op)))
    return true;
  return Conflict(x, op, lane, word,
                  (write ? "writes shared address " : "reads shared address ") + Hex(word * 4) +
                      ", updated" + By(last.thread, last.line),
                  last.thread, last.line);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
