#include "atunner/vgpu/checks/cluster_shadow.h"

#include <algorithm>

#include "atunner/vgpu/checks/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr const char* kNoBarrier = " with no cluster barrier between";

bool Unordered(const BlockState& owner, uint32_t epoch) {
  return epoch != 0 && epoch >= owner.cluster.synchronised_epoch;
}

std::string Verb(Access access) {
  return access == Access::kRead    ? "reads"
         : access == Access::kWrite ? "writes"
                                    : "atomically updates";
}

/// Reports a race of an access of `x` with an earlier one by `thread` of block `other`. Returns
/// false.
bool Conflict(BlockState& x, const Op& op, int lane, uint64_t word, Access access,
              const BlockState& other, uint32_t thread, uint32_t line, const char* earlier) {
  Hazard::Site site = SiteOf(x, op, other.block, thread);
  site.line = line;
  const bool own = &other == &x;
  Report(x, op, Hazard::Kind::kRace, lane,
         Verb(access) + " shared address " + Hex(word * 4) + (own ? "" : " of the cluster") + ", " +
             earlier + " by thread " + std::to_string(thread) + " of block " +
             std::to_string(other.block) + " at line " + std::to_string(line) + kNoBarrier,
         {Space::kShared, word * 4, site});
  return false;
}

bool MeetAccess(BlockState& x, const Op& op, int lane, uint64_t word, Access access,
                const ClusterWord::Access& met, const char* earlier) {
  return Conflict(x, op, lane, word, access, *x.peers->members[met.rank], met.thread,
                  LineOf(x, *met.op), earlier);
}

constexpr const char* kWroteIt = "written";
constexpr const char* kReadIt = "read";
constexpr const char* kUpdatedIt = "updated";

/// Checks a remote access against those of the block that owns the word.
bool CheckAgainstOwner(BlockState& x, BlockState& owner, const Op& op, int lane, uint64_t word,
                       Access access) {
  const SharedShadow& s = owner.shadow.words[word];
  if (s.writer < kProductAccessor && Unordered(owner, s.write_epoch))
    return Conflict(x, op, lane, word, access, owner, s.writer, s.write_line, kWroteIt);
  if (access != Access::kRead && s.reader < kProductAccessor && Unordered(owner, s.read_epoch))
    return Conflict(x, op, lane, word, access, owner, s.reader, s.read_line, kReadIt);
  if (access == Access::kAtomic || (s.in_flight & kStrongWrite) == 0) return true;
  const StrongShadow& strong = owner.shadow.strong[word];
  return !Unordered(owner, strong.epoch) ||
         Conflict(x, op, lane, word, access, owner, strong.thread, strong.line, kUpdatedIt);
}

}  // namespace

bool CheckRemoteAccess(BlockState& x, BlockState& owner, const Op& op, int lane, uint64_t word,
                       Access access) {
  if (!CheckAgainstOwner(x, owner, op, lane, word, access)) return false;
  if (owner.cluster.words.empty()) owner.cluster.words.resize(owner.shadow.words.size());
  ClusterWord& reached = owner.cluster.words[word];
  const auto meets = [&](const ClusterWord::Access& earlier) {
    return earlier.rank != x.cluster.rank && Unordered(owner, earlier.epoch);
  };
  if (meets(reached.write)) return MeetAccess(x, op, lane, word, access, reached.write, kWroteIt);
  if (access != Access::kRead && meets(reached.read))
    return MeetAccess(x, op, lane, word, access, reached.read, kReadIt);
  if (access != Access::kAtomic && meets(reached.atomic))
    return MeetAccess(x, op, lane, word, access, reached.atomic, kUpdatedIt);
  owner.cluster.last_access = {owner.shadow.epoch, x.cluster.rank, x.ThreadOf(lane), &op};
  (access == Access::kRead    ? reached.read
   : access == Access::kWrite ? reached.write
                              : reached.atomic) = owner.cluster.last_access;
  owner.shadow.words[word].in_flight |= kRemoteAccess;
  owner.shadow.only_read_in[word] = 0;
  return true;
}

bool CheckAgainstRemote(BlockState& x, const Op& op, int lane, uint64_t word, Access access) {
  const ClusterWord& reached = x.cluster.words[word];
  if (Unordered(x, reached.write.epoch))
    return MeetAccess(x, op, lane, word, access, reached.write, kWroteIt);
  const bool read = Unordered(x, reached.read.epoch);
  const bool updated = Unordered(x, reached.atomic.epoch);
  if (updated && access != Access::kAtomic)
    return MeetAccess(x, op, lane, word, access, reached.atomic, kUpdatedIt);
  if (read && access != Access::kRead)
    return MeetAccess(x, op, lane, word, access, reached.read, kReadIt);
  if (!read && !updated) x.shadow.words[word].in_flight &= static_cast<uint8_t>(~kRemoteAccess);
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
