#include "atunner/vgpu/checks/cluster_shadow.h"

#include <algorithm>

#include "atunner/vgpu/checks/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr const char* kNoBarrier = " with no cluster barrier between";

bool Unordered(const Exec& owner, uint32_t epoch) {
  return epoch != 0 && epoch >= owner.cluster_epoch;
}

std::string Verb(bool write) { return write ? "writes" : "reads"; }

/// What `x` does is in conflict with what thread `thread` of `other` did by `op`.
bool Conflict(Exec& x, const Op& op, int lane, uint64_t word, bool write, const Exec& other,
              uint32_t thread, uint32_t line, bool written) {
  Hazard::Site site = SiteOf(x, op, other.block, thread);
  site.line = line;
  const bool own = &other == &x;
  Report(x, op, Hazard::Kind::kRace, lane,
         Verb(write) + " shared address " + Hex(word * 4) + (own ? "" : " of the cluster") +
             (written ? ", written by thread " : ", read by thread ") + std::to_string(thread) +
             " of block " + std::to_string(other.block) + " at line " + std::to_string(line) +
             kNoBarrier,
         {Space::kShared, word * 4, site});
  return false;
}

bool MeetAccess(Exec& x, const Op& op, int lane, uint64_t word, bool write,
                const ClusterWord::Access& access, bool written) {
  return Conflict(x, op, lane, word, write, *x.gang->members[access.rank], access.thread,
                  LineOf(x, *access.op), written);
}

}  // namespace

bool ReachInto(Exec& x, Exec& owner, const Op& op, int lane, uint64_t word, bool write) {
  SharedShadow& s = owner.shadow[word];
  if (s.writer < kProductParty && Unordered(owner, s.write_epoch))
    return Conflict(x, op, lane, word, write, owner, s.writer, s.write_line, true);
  if (write && s.reader < kProductParty && Unordered(owner, s.read_epoch))
    return Conflict(x, op, lane, word, write, owner, s.reader, s.read_line, false);
  if (owner.reached_into.empty()) owner.reached_into.resize(owner.shadow.size());
  ClusterWord& reached = owner.reached_into[word];
  if (reached.write.rank != x.rank && Unordered(owner, reached.write.epoch))
    return MeetAccess(x, op, lane, word, write, reached.write, true);
  if (write && reached.read.rank != x.rank && Unordered(owner, reached.read.epoch))
    return MeetAccess(x, op, lane, word, write, reached.read, false);
  owner.last_reach = {owner.epoch, x.rank, x.ThreadOf(lane), &op};
  (write ? reached.write : reached.read) = owner.last_reach;
  s.in_flight |= kReachedInto;
  owner.calm[word] = 0;
  return true;
}

bool MeetReach(Exec& x, const Op& op, int lane, uint64_t word, bool write) {
  const ClusterWord& reached = x.reached_into[word];
  if (Unordered(x, reached.write.epoch))
    return MeetAccess(x, op, lane, word, write, reached.write, true);
  if (!Unordered(x, reached.read.epoch))
    x.shadow[word].in_flight &= static_cast<uint8_t>(~kReachedInto);
  else if (write)
    return MeetAccess(x, op, lane, word, write, reached.read, false);
  return true;
}

void CheckLastReach(Exec& x) {
  if (!Unordered(x, x.last_reach.epoch)) return;
  Exec& other = *x.gang->members[x.last_reach.rank];
  Warp* const running = other.warp;
  other.warp = &other.warps[x.last_reach.thread / kLanes];
  Report(other, *x.last_reach.op, Hazard::Kind::kOutOfBounds,
         static_cast<int>(x.last_reach.thread % kLanes),
         "reaches into shared memory of block " + std::to_string(x.rank) +
             " of the cluster, which ends without waiting for that");
  other.warp = running;
}

void Tell(const Exec& from, Exec& to) {
  to.heard.resize(from.gang->members.size());
  for (size_t rank = 0; rank < from.heard.size(); ++rank)
    to.heard[rank] = std::max(to.heard[rank], from.heard[rank]);
  to.heard[from.rank] = from.epoch;
}

void TellCluster(const Exec& x) {
  if (!x.check || x.launch->cluster.Count() == 1) return;
  for (Exec* member : x.gang->members) {
    if (member != &x) Tell(x, *member);
  }
}

bool HasHeard(const Exec& x, const Exec& other, uint32_t epoch) {
  return other.rank < x.heard.size() && x.heard[other.rank] >= epoch;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
