#include "atunner/vgpu/checks/cluster_shadow.h"

#include <algorithm>

#include "atunner/vgpu/checks/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr const char* kNoBarrier = " with no cluster barrier between";

bool Unordered(const BlockState& owner, uint32_t epoch) {
  return epoch != 0 && epoch >= owner.cluster.synchronised_epoch;
}

std::string Verb(bool write) { return write ? "writes" : "reads"; }

/// Reports a race of an access of `x` with an earlier one by `thread` of block `other`. Returns
/// false.
bool Conflict(BlockState& x, const Op& op, int lane, uint64_t word, bool write,
              const BlockState& other, uint32_t thread, uint32_t line, bool written) {
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

bool MeetAccess(BlockState& x, const Op& op, int lane, uint64_t word, bool write,
                const ClusterWord::Access& access, bool written) {
  return Conflict(x, op, lane, word, write, *x.peers->members[access.rank], access.thread,
                  LineOf(x, *access.op), written);
}

}  // namespace

bool CheckRemoteAccess(BlockState& x, BlockState& owner, const Op& op, int lane, uint64_t word,
                       bool write) {
  SharedShadow& s = owner.shadow.words[word];
  if (s.writer < kProductAccessor && Unordered(owner, s.write_epoch))
    return Conflict(x, op, lane, word, write, owner, s.writer, s.write_line, true);
  if (write && s.reader < kProductAccessor && Unordered(owner, s.read_epoch))
    return Conflict(x, op, lane, word, write, owner, s.reader, s.read_line, false);
  if (owner.cluster.words.empty()) owner.cluster.words.resize(owner.shadow.words.size());
  ClusterWord& reached = owner.cluster.words[word];
  if (reached.write.rank != x.cluster.rank && Unordered(owner, reached.write.epoch))
    return MeetAccess(x, op, lane, word, write, reached.write, true);
  if (write && reached.read.rank != x.cluster.rank && Unordered(owner, reached.read.epoch))
    return MeetAccess(x, op, lane, word, write, reached.read, false);
  owner.cluster.last_access = {owner.shadow.epoch, x.cluster.rank, x.ThreadOf(lane), &op};
  (write ? reached.write : reached.read) = owner.cluster.last_access;
  s.in_flight |= kRemoteAccess;
  owner.shadow.only_read_in[word] = 0;
  return true;
}

bool CheckAgainstRemote(BlockState& x, const Op& op, int lane, uint64_t word, bool write) {
  const ClusterWord& reached = x.cluster.words[word];
  if (Unordered(x, reached.write.epoch))
    return MeetAccess(x, op, lane, word, write, reached.write, true);
  if (!Unordered(x, reached.read.epoch))
    x.shadow.words[word].in_flight &= static_cast<uint8_t>(~kRemoteAccess);
  else if (write)
    return MeetAccess(x, op, lane, word, write, reached.read, false);
  return true;
}

void CheckLastRemoteAccess(BlockState& x) {
  if (!Unordered(x, x.cluster.last_access.epoch)) return;
  BlockState& other = *x.peers->members[x.cluster.last_access.rank];
  Warp* const running = other.warp;
  other.warp = &other.warps[x.cluster.last_access.thread / kLanes];
  Report(other, *x.cluster.last_access.op, Hazard::Kind::kOutOfBounds,
         static_cast<int>(x.cluster.last_access.thread % kLanes),
         "reaches into shared memory of block " + std::to_string(x.cluster.rank) +
             " of the cluster, which ends without waiting for that");
  other.warp = running;
}

void PropagateClock(const BlockState& from, BlockState& to) {
  to.cluster.happens_before.resize(from.peers->members.size());
  for (size_t rank = 0; rank < from.cluster.happens_before.size(); ++rank)
    to.cluster.happens_before[rank] = std::max(to.cluster.happens_before[rank],
                                               from.cluster.happens_before[rank]);
  to.cluster.happens_before[from.cluster.rank] = from.shadow.epoch;
}

void PropagateToCluster(const BlockState& x) {
  if (!x.checks.any || x.launch->cluster.Count() == 1) return;
  for (BlockState* member : x.peers->members) {
    if (member != &x) PropagateClock(x, *member);
  }
}

bool HappenedBefore(const ClusterState& cluster, uint32_t rank, uint32_t epoch) {
  return rank < cluster.happens_before.size() && cluster.happens_before[rank] >= epoch;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
