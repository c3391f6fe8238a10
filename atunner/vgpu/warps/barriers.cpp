#include "atunner/vgpu/warps/barriers.h"

#include <algorithm>
#include <span>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/cluster_shadow.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/checks/synchronisation.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

void WriteReduction(BlockState& x, Warp& warp, const Group& group, const BarrierState& state,
                    uint32_t total) {
  Warp* saved = x.warp;
  x.warp = &warp;
  const Op& op = *group.reduction;
  uint32_t* d = x.Slot(op.dst);
  if (op.variant == 2) {
    ForLanes(group.mask, [&](int l) { d[l] = state.votes; });
  } else {
    const bool holds = op.variant == 3 ? state.votes == total : state.votes > 0;
    *d = (*d & ~group.mask) | (holds ? group.mask : 0);
  }
  x.warp = saved;
}

void Release(BlockState& x, int id) {
  BarrierState& state = x.progress.barriers[static_cast<size_t>(id)];
  ++x.shadow.epoch;
  std::vector<uint32_t> met;
  bool all = true;
  for (Warp& warp : x.warps) {
    bool any = false;
    for (Group& group : warp.groups) {
      if (group.barrier != id) continue;
      if (group.reduction) WriteReduction(x, warp, group, state, state.arrived);
      group.barrier = -1;
      group.reduction = nullptr;
      any = true;
    }
    all = all && (any || warp.alive == 0);
    if (!any) continue;
    warp.seen_epoch = x.shadow.epoch;
    warp.clocks = std::max(warp.clocks, state.clocks);
    warp.before.Include(state.released);
    Normalise(warp);
    if (x.timing.enabled) met.push_back(warp.index);
  }
  if (all) MeetAll(x);
  if (x.timing.enabled) SynchroniseWarps(x, met);
  state = {};
}

/// Opens barrier.cluster when all threads of the cluster that have not exited have arrived.
void CheckClusterBarrier(CoScheduledBlocks& peers) {
  uint64_t alive = 0;
  for (const BlockState* member : peers.members) alive += member->progress.alive_threads;
  if (peers.cluster_arrived == 0 || peers.cluster_arrived < alive) return;
  peers.cluster_arrived = 0;
  ++peers.cluster_phase;
  if (peers.members.front()->timing.enabled) SynchroniseCluster(peers);
  OrderPeers(peers);
  for (const BlockState* member : peers.members) PropagateToCluster(*member);
  uint64_t clocks = 0;
  for (const BlockState* member : peers.members) {
    for (const Warp& warp : member->warps) clocks = std::max(clocks, warp.clocks);
  }
  for (BlockState* member : peers.members) {
    bool all = true;
    for (Warp& warp : member->warps) {
      bool any = false;
      for (Group& group : warp.groups) {
        if (group.barrier != kClusterBarrier) continue;
        group.barrier = -1;
        any = true;
      }
      all = all && (any || warp.alive == 0);
      if (!any) continue;
      warp.seen_epoch = member->shadow.epoch;
      warp.clocks = clocks;
      warp.before.Include(member->shadow.epoch);
      Normalise(warp);
    }
    if (all) MeetAll(*member);
  }
}

/// The warp passes a cluster barrier that has opened already.
void SeeClusterBarrier(BlockState& x) {
  SeeAll(x);
  x.warp->before.Include(x.cluster.synchronised_epoch);
}

void Arrive(BlockState& x, const Op& op, Group& group, uint32_t mask) {
  const int first = std::countr_zero(mask);
  const auto id = static_cast<int>(x.Source(op.src[0])[first]);
  if (id < 0 || id > 15)
    return Report(x, op, Hazard::Kind::kDivergentBarrier, first,
                  "barrier number " + std::to_string(id) + " does not exist");
  if (x.checks.sync && !op.relaxed && mask != x.warp->alive) {
    return Report(x, op, Hazard::Kind::kDivergentBarrier, first,
                  "only some lanes of the warp reach this barrier");
  }
  BarrierState& state = x.progress.barriers[static_cast<size_t>(id)];
  state.arrived += static_cast<uint32_t>(std::popcount(mask));
  state.clocks = std::max(state.clocks, x.warp->clocks);
  if (op.src[1] != INT32_MIN) state.expected = x.Source(op.src[1])[first];
  if (state.expected % kLanes != 0)
    return Report(
        x, op, Hazard::Kind::kDivergentBarrier, first,
        "a barrier of " + std::to_string(state.expected) + " threads is none of whole warps");
  if (op.variant >= 2) {
    const uint32_t p = *x.Source(op.src[2]) ^ (op.sign_extend ? ~0u : 0u);
    state.votes += static_cast<uint32_t>(std::popcount(p & mask));
    group.reduction = &op;
  }
  const bool waits = op.variant != 1;
  if (x.checks.any && (!waits || state.expected != 0)) {
    state.released.Include(ReleasedBy(x, ~0u));
    if (!waits) ++x.shadow.epoch;  // what follows is not released
  }
  if (waits) group.barrier = id;
  if (state.arrived >= (state.expected ? state.expected : x.progress.alive_threads)) Release(x, id);
}

void ArriveWarp(BlockState& x, const Op& op, size_t index, uint32_t mask) {
  Warp& warp = *x.warp;
  warp.members = Named(x.Source(op.src[0]), mask);
  warp.groups[index].barrier = kWarpBarrier;
  uint32_t arrived = 0;
  for (const Group& group : warp.groups) {
    if (group.barrier == kWarpBarrier) arrived |= group.mask;
  }
  if ((warp.members & warp.alive & ~arrived) != 0) return;
  for (Group& group : warp.groups) {
    if (group.barrier == kWarpBarrier) group.barrier = -1;
  }
  ++warp.sync_epoch;
  Normalise(warp);
}

std::span<Warp> WarpGroup(BlockState& x) {
  const size_t first = size_t{x.warp->index} / kGroupWarps * kGroupWarps;
  return std::span(x.warps).subspan(first, std::min<size_t>(kGroupWarps, x.warps.size() - first));
}

/// Reports a warp that waits for its warp group although another warp of the group has ended.
void CheckGroup(BlockState& x) {
  const std::span<Warp> group = WarpGroup(x);
  const auto ended = std::ranges::find(group, 0u, &Warp::alive);
  if (ended == group.end()) return;
  for (const Warp& warp : group) {
    for (const Group& waiting : warp.groups) {
      if (waiting.barrier != kGroupBarrier) continue;
      return Report(
          x, x.kernel->ops[waiting.pc - 1], Hazard::Kind::kDivergentBarrier, 0,
          "does not go on: warp " + std::to_string(ended->index) + " of its warp group has ended");
    }
  }
}

/// Splits the active lanes off the group if some lanes skip the operation. The program counter is
/// behind the operation.
void Separate(Warp& warp, Cursor& c, uint32_t active) {
  ++c.pc;
  warp.groups[c.index].pc = c.pc;
  if (active == c.mask) return;
  warp.groups[c.index].mask = c.mask & ~active;
  warp.groups.push_back({c.pc, active, -1, nullptr, warp.groups[c.index].depth});
  c.index = warp.groups.size() - 1;
}

/// True if all paths from operation `from` pass operation `to`, within a function: diverged lanes
/// reconverge there, even if the compiler placed `to` before them.
bool LeadsTo(const Kernel& kernel, uint32_t from, uint32_t to) {
  std::vector<uint32_t> places = {from};
  std::vector<bool> seen(kernel.ops.size());
  while (!places.empty()) {
    const uint32_t at = places.back();
    places.pop_back();
    if (at >= seen.size()) return false;
    if (seen[at]) continue;
    seen[at] = true;
    const uint32_t end = kernel.flow_ops[at];
    if (at <= to && to <= end) continue;
    if (end >= kernel.ops.size()) return false;
    const Op& op = kernel.ops[end];
    const Flow flow = FlowOf(kernel, op);
    if (flow == Flow::kExit || flow == Flow::kReturn) return false;
    if (flow == Flow::kBranch) places.push_back(op.target);
    if (flow == Flow::kBranchIndexed) {
      for (uint64_t i = 0; i < op.imm; ++i)
        places.push_back(static_cast<uint32_t>(kernel.lists[op.list + i]));
    }
    const bool jumps = flow == Flow::kBranch || flow == Flow::kBranchIndexed || flow == Flow::kTrap;
    if (!jumps || op.guard >= 0) places.push_back(end + 1);
  }
  return true;
}

/// True if lanes at `pc` only have to exit: a `return` before a barrier, which compilers move to
/// the end.
bool IsLeaving(const Kernel& kernel, uint32_t pc) {
  const Op* op = &kernel.ops[pc];
  for (int i = 0; i < 4 && FlowOf(kernel, *op) == Flow::kBranch && op->guard < 0; ++i)
    op = &kernel.ops[op->target];
  const Flow flow = FlowOf(kernel, *op);
  return op->guard < 0 && (flow == Flow::kExit || flow == Flow::kReturn);
}

/// True if the group must wait because diverged lanes of the warp may still arrive at `pc`. Lanes
/// that already wait there join the group.
bool WaitsForSiblings(const Kernel& kernel, Warp& warp, size_t index, uint32_t pc) {
  const uint32_t depth = warp.groups[index].depth;
  bool behind = false;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    Group& other = warp.groups[i];
    if (i == index || other.mask == 0) continue;
    if (other.barrier == kCollective && other.pc == pc && other.depth == depth) {
      warp.groups[index].mask |= other.mask;
      other.mask = 0;
    }
    if (behind || other.barrier >= 0 || other.mask == 0) continue;
    behind = other.depth > depth || (other.depth == 0 && IsLeaving(kernel, other.pc)) ||
             (other.depth == depth && (other.pc < pc || LeadsTo(kernel, other.pc, pc)));
  }
  return behind;
}

/// Merges the group with lanes that wait here; false if the group must wait for further lanes.
bool Gather(const Kernel& kernel, Warp& warp, Cursor& c, uint32_t& active) {
  if (active != c.mask || warp.groups.size() == 1) return true;
  warp.groups[c.index].pc = c.pc;
  if (WaitsForSiblings(kernel, warp, c.index, c.pc)) {
    warp.groups[c.index].barrier = kCollective;
    Normalise(warp);
    return false;
  }
  active = c.mask = warp.groups[c.index].mask;
  return true;
}

/// Executes an operation for the four warps of a warp group when the last of them has arrived.
void RunForWarpGroup(BlockState& x, const Op& op, Group& group) {
  const std::span<Warp> warps = WarpGroup(x);
  if (warps.size() < kGroupWarps)
    return Report(x, op, Hazard::Kind::kDivergentBarrier, 0,
                  "has no whole warp group: the block's warps end before");
  group.barrier = kGroupBarrier;
  if (x.checks.any) CheckGroup(x);
  const uint32_t place = group.pc;
  const auto meets = [&](const Group& other) {
    return other.barrier == kGroupBarrier && other.pc == place;
  };
  for (const Warp& warp : warps) {
    if (std::ranges::none_of(warp.groups, meets)) return;
  }
  op.run(x, op, ~0u);
  for (Warp& warp : warps) {
    std::ranges::find_if(warp.groups, meets)->barrier = -1;
    Normalise(warp);
  }
}

}  // namespace

void CheckBarriers(BlockState& x) {
  for (int id = 0; id < 16; ++id) {
    const BarrierState& state = x.progress.barriers[static_cast<size_t>(id)];
    if (state.arrived > 0 &&
        state.arrived >= (state.expected ? state.expected : x.progress.alive_threads))
      Release(x, id);
  }
  CheckClusterBarrier(*x.peers);
  if (x.checks.any && x.warp->alive == 0) CheckGroup(x);
}

Next Barrier(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
  ++x.counting.total.barriers;
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  Warp& warp = *x.warp;
  if (!Gather(*x.kernel, warp, c, active)) return Next::kSwitch;
  Separate(warp, c, active);
  Arrive(x, op, x.warp->groups[c.index], active);
  Normalise(*x.warp);
  return Next::kSwitch;
}

Next Aligned(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  Warp& warp = *x.warp;
  if (!Gather(*x.kernel, warp, c, active)) return Next::kSwitch;
  if (active != (op.target == kWholeGroup ? ~0u : warp.alive))
    Report(x, op, Hazard::Kind::kDivergentBarrier, std::countr_zero(active),
           "only some lanes of the warp reach this instruction, which all of them must execute");
  Separate(warp, c, active);
  if (op.target == kWholeGroup)
    RunForWarpGroup(x, op, warp.groups[c.index]);
  else
    op.run(x, op, active);
  Normalise(warp);
  return Next::kSwitch;
}

Next ClusterBarrier(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  if (!op.relaxed && !Gather(*x.kernel, *x.warp, c, active)) return Next::kSwitch;
  if (x.checks.sync && !op.relaxed && active != x.warp->alive)
    Report(x, op, Hazard::Kind::kDivergentBarrier, std::countr_zero(active),
           "only some lanes of the warp reach this cluster barrier");
  Separate(*x.warp, c, active);
  CoScheduledBlocks& peers = *x.peers;
  if (op.variant == 0) {
    peers.cluster_arrived += static_cast<uint64_t>(std::popcount(active));
    ForLanes(active, [&](int l) { x.cluster.phase[x.ThreadOf(l)] = peers.cluster_phase; });
    CheckClusterBarrier(peers);
  } else {
    bool waits = false;
    ForLanes(active,
             [&](int l) { waits |= x.cluster.phase[x.ThreadOf(l)] == peers.cluster_phase; });
    if (waits)
      x.warp->groups[c.index].barrier = kClusterBarrier;
    else
      SeeClusterBarrier(x);
  }
  Normalise(*x.warp);
  return Next::kSwitch;
}

Next WarpSync(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  const uint32_t* masks = x.Source(op.src[0]);
  const uint32_t named = Named(masks, active);
  for (uint32_t m = x.checks.sync ? active : 0; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    if ((masks[l] >> l & 1u) == 0) {
      Report(x, op, Hazard::Kind::kInvalidShuffle, l,
             "executes a warp barrier whose mask does not name it");
      break;
    }
  }
  if (active == c.mask && (named & warp.alive & ~c.mask) == 0) {
    ++c.pc;
    ++warp.sync_epoch;
    return Next::kContinue;
  }
  Separate(warp, c, active);
  ArriveWarp(x, op, c.index, active);
  return Next::kSwitch;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
