// Branches, barriers and calls: what happens to groups of lanes.
#include "atunner/vgpu/flow.h"

#include <algorithm>
#include <span>

#include "atunner/vgpu/access.h"
#include "atunner/vgpu/pending.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

namespace {
bool RunsBefore(const Group& a, const Group& b) { return a.depth != b.depth ? a.depth > b.depth : a.pc < b.pc; }
}  // namespace

void Normalise(Warp& warp) {
  if (warp.groups.size() == 1 && warp.groups.front().mask != 0) return;
  std::erase_if(warp.groups, [](const Group& group) { return group.mask == 0; });
  // There are few, and all but one are in their places.
  for (size_t i = 1; i < warp.groups.size(); ++i) {
    for (size_t k = i; k > 0 && RunsBefore(warp.groups[k], warp.groups[k - 1]); --k)
      std::swap(warp.groups[k], warp.groups[k - 1]);
  }
  for (size_t i = 0; i + 1 < warp.groups.size();) {
    Group& a = warp.groups[i];
    const Group& b = warp.groups[i + 1];
    if (a.pc == b.pc && a.barrier == b.barrier && a.depth == b.depth) {
      a.mask |= b.mask;
      warp.groups.erase(warp.groups.begin() + static_cast<long>(i) + 1);
    } else {
      ++i;
    }
  }
}

uint32_t Limit(const Warp& warp, size_t running) {
  const Group& mine = warp.groups[running];
  uint32_t limit = ~0u;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    const Group& other = warp.groups[i];
    if (i != running && other.barrier < 0 && other.depth == mine.depth && other.pc > mine.pc)
      limit = std::min(limit, other.pc);
  }
  return limit;
}

namespace {

constexpr uint32_t kMostRetries = 1000;  // of a suspended try_wait: then its time limit is over
constexpr uint32_t kPatience = 16;       // backward branches with polling before other warps get their turn

void WriteReduction(Exec& x, Warp& warp, const Group& group, const BarrierState& state, uint32_t total) {
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

void Release(Exec& x, int id) {
  BarrierState& state = x.barriers[static_cast<size_t>(id)];
  ++x.epoch;
  std::vector<uint32_t> met;
  for (Warp& warp : x.warps) {
    bool any = false;
    for (Group& group : warp.groups) {
      if (group.barrier != id) continue;
      if (group.reduction) WriteReduction(x, warp, group, state, state.arrived);
      group.barrier = -1;
      group.reduction = nullptr;
      any = true;
    }
    if (!any) continue;
    warp.seen_epoch = x.epoch;
    Normalise(warp);
    if (x.timed) met.push_back(warp.index);
  }
  if (x.timed) Meet(x, met);
  state = {};
}

/// Opens barriers that exited threads were the last missing ones of.
void CheckBarriers(Exec& x) {
  for (int id = 0; id < 16; ++id) {
    const BarrierState& state = x.barriers[static_cast<size_t>(id)];
    if (state.arrived > 0 && state.arrived >= (state.expected ? state.expected : x.alive_threads)) Release(x, id);
  }
}

/// Opens barrier.cluster when all living threads of the gang have arrived.
void CheckClusterBarrier(Gang& gang) {
  uint64_t alive = 0;
  for (const Exec* member : gang.members) alive += member->alive_threads;
  if (gang.cluster_arrived == 0 || gang.cluster_arrived < alive) return;
  gang.cluster_arrived = 0;
  ++gang.cluster_phase;
  if (gang.members.front()->timed) MeetCluster(gang);
  OrderGang(gang);
  for (Exec* member : gang.members) {
    for (Warp& warp : member->warps) {
      bool any = false;
      for (Group& group : warp.groups) {
        if (group.barrier != kClusterBarrier) continue;
        group.barrier = -1;
        any = true;
      }
      if (!any) continue;
      warp.seen_epoch = member->epoch;
      Normalise(warp);
    }
  }
}

void Arrive(Exec& x, const Op& op, Group& group, uint32_t mask) {
  const int first = std::countr_zero(mask);
  const auto id = static_cast<int>(x.Source(op.src[0])[first]);
  if (id < 0 || id > 15)
    return Report(x, op, Hazard::Kind::kDivergentBarrier, first,
                  "barrier number " + std::to_string(id) + " does not exist");
  if (x.check_sync && !op.relaxed && mask != x.warp->alive) {
    return Report(x, op, Hazard::Kind::kDivergentBarrier, first, "only some lanes of the warp reach this barrier");
  }
  BarrierState& state = x.barriers[static_cast<size_t>(id)];
  state.arrived += static_cast<uint32_t>(std::popcount(mask));
  if (op.src[1] != INT32_MIN) state.expected = x.Source(op.src[1])[first];
  if (op.variant >= 2) {
    const uint32_t p = *x.Source(op.src[2]) ^ (op.sign_extend ? ~0u : 0u);
    state.votes += static_cast<uint32_t>(std::popcount(p & mask));
    group.reduction = &op;
  }
  if (op.variant != 1) group.barrier = id;
  if (state.arrived >= (state.expected ? state.expected : x.alive_threads)) Release(x, id);
}

/// All lanes that the masks of `lanes` name: tiles of a warp pass different ones.
uint32_t Named(const uint32_t* masks, uint32_t lanes) {
  uint32_t named = 0;
  ForLanes(lanes, [&](int l) { named |= masks[l]; });
  return named;
}

void ArriveWarp(Exec& x, const Op& op, size_t index, uint32_t mask) {
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

/// Lanes of the same warp that a collective at `pc` has to wait for. Those that wait at this very place join the group.
/// False: run it now, with the lanes there are.
bool MustWait(Exec& x, const Op& op, size_t index, uint32_t pc) {
  Warp& warp = *x.warp;
  Group& group = warp.groups[index];
  const uint32_t named = Named(x.Source(op.src[op.target]), group.mask);
  if ((named & warp.alive & ~group.mask) == 0) return false;
  bool other_runs = false;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    Group& other = warp.groups[i];
    if (i == index || other.mask == 0) continue;
    if (other.barrier == kCollective && other.pc == pc) {
      group.mask |= other.mask;
      other.mask = 0;
    } else {
      other_runs |= other.barrier < 0;
    }
  }
  return other_runs && (named & warp.alive & ~group.mask) != 0;
}

/// Whether the running group would be picked again at its new place, with no other to merge with.
bool StaysFirst(const Warp& warp, const Cursor& c) {
  if (warp.groups.size() == 1) return true;
  if (c.index != 0 || warp.spins > kSpinLimit) return false;
  const Group& next = warp.groups[1];
  return next.depth != warp.groups[0].depth || c.pc < next.pc;
}

Next Branch(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  ++x.counts.branches;
  if (op.target <= c.pc && active != 0) ++warp.spins;
  if (active == c.mask) {
    const bool backward = op.target <= c.pc;
    c.pc = op.target;
    // Going back, others may now be ahead: their places bound the run again.
    warp.groups[c.index].pc = c.pc;
    if (x.polled && backward && warp.spins > kPatience) {  // waits for another warp or block
      x.polled = false;
      return Next::kYield;
    }
    c.limit = Limit(warp, c.index);
    return StaysFirst(warp, c) ? Next::kContinue : Next::kRegroup;
  }
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  ++x.counts.divergent_branches;
  if (warp.groups.size() == 1) warp.spins = 0;  // what all lanes looped through together was no spinning
  warp.groups[c.index].mask = c.mask & ~active;
  warp.groups.push_back({op.target, active, -1, nullptr, warp.groups[c.index].depth});
  ++c.pc;
  return Next::kRegroup;
}

Next BranchIndexed(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  const uint32_t* selector = x.Source(op.src[0]);
  const uint32_t depth = warp.groups[c.index].depth;
  warp.groups[c.index].mask = c.mask & ~active;
  for (uint32_t m = active; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    if (selector[l] >= op.imm) {
      Report(x, op, Hazard::Kind::kTrap, l, "indexed branch outside its table");
      break;
    }
    warp.groups.push_back({static_cast<uint32_t>(x.kernel->lists[op.list + selector[l]]), 1u << l, -1, nullptr, depth});
  }
  ++c.pc;
  return Next::kRegroup;
}

std::span<Warp> WarpGroup(Exec& x) {
  const size_t first = x.warp->index / kGroupWarps * kGroupWarps;
  return std::span(x.warps).subspan(first, std::min<size_t>(kGroupWarps, x.warps.size() - first));
}

/// A warp that waits for its group when another of the group has ended waits for ever.
void CheckGroup(Exec& x) {
  const std::span<Warp> group = WarpGroup(x);
  const auto ended = std::ranges::find(group, 0u, &Warp::alive);
  if (ended == group.end()) return;
  for (const Warp& warp : group) {
    for (const Group& waiting : warp.groups) {
      if (waiting.barrier != kGroupBarrier) continue;
      return Report(x, x.kernel->ops[waiting.pc - 1], Hazard::Kind::kDivergentBarrier, 0,
                    "does not go on: warp " + std::to_string(ended->index) + " of its warp group has ended");
    }
  }
}

Next Exit(Exec& x, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  warp.alive &= ~active;
  x.alive_threads -= static_cast<uint64_t>(std::popcount(active));
  warp.groups[c.index].mask = c.mask & ~active;
  ++c.pc;
  if (active != 0) {
    warp.groups[c.index].pc = c.pc;
    CheckBarriers(x);
    CheckClusterBarrier(*x.gang);
    if (x.check && warp.alive == 0) CheckGroup(x);
  }
  return Next::kRegroup;
}

/// Splits the active lanes off the group when some lanes pass by; the place is behind the operation.
void Separate(Warp& warp, Cursor& c, uint32_t active) {
  ++c.pc;
  warp.groups[c.index].pc = c.pc;
  if (active == c.mask) return;
  warp.groups[c.index].mask = c.mask & ~active;
  warp.groups.push_back({c.pc, active, -1, nullptr, warp.groups[c.index].depth});
  c.index = warp.groups.size() - 1;
}

/// Whether all ways on from one place lead past another, within a function: there diverged lanes meet again, also where
/// the compiler put it before them.
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
      for (uint64_t i = 0; i < op.imm; ++i) places.push_back(static_cast<uint32_t>(kernel.lists[op.list + i]));
    }
    const bool jumps = flow == Flow::kBranch || flow == Flow::kBranchIndexed || flow == Flow::kTrap;
    if (!jumps || op.guard >= 0) places.push_back(end + 1);
  }
  return true;
}

/// Whether lanes here have nothing left to do: a `return` in front of a barrier, which compilers put at the end.
bool IsLeaving(const Kernel& kernel, uint32_t pc) {
  const Op* op = &kernel.ops[pc];
  for (int i = 0; i < 4 && FlowOf(kernel, *op) == Flow::kBranch && op->guard < 0; ++i) op = &kernel.ops[op->target];
  const Flow flow = FlowOf(kernel, *op);
  return op->guard < 0 && (flow == Flow::kExit || flow == Flow::kReturn);
}

/// A sibling that got its turn early is not divergent yet: it waits for lanes which may still come. Those that wait at
/// this very place join the group.
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

/// Takes in the siblings that wait here; false when the group has to wait for others itself.
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

Next Barrier(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  ++x.counts.barriers;
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

/// Runs an operation for the four warps of a group once the last of them is there.
void MeetInGroup(Exec& x, const Op& op, Group& group) {
  const std::span<Warp> warps = WarpGroup(x);
  if (warps.size() < kGroupWarps)
    return Report(x, op, Hazard::Kind::kDivergentBarrier, 0, "has no whole warp group: the block's warps end before");
  group.barrier = kGroupBarrier;
  if (x.check) CheckGroup(x);
  const uint32_t place = group.pc;
  const auto meets = [&](const Group& other) { return other.barrier == kGroupBarrier && other.pc == place; };
  for (const Warp& warp : warps) {
    if (std::ranges::none_of(warp.groups, meets)) return;
  }
  op.run(x, op, ~0u);
  for (Warp& warp : warps) {
    std::ranges::find_if(warp.groups, meets)->barrier = -1;
    Normalise(warp);
  }
}

/// .sync.aligned: all lanes of the warp, and for some operations of its warp group, execute it together.
Next Aligned(Exec& x, const Op& op, Cursor& c, uint32_t active) {
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
    MeetInGroup(x, op, warp.groups[c.index]);
  else
    op.run(x, op, active);
  Normalise(warp);
  return Next::kSwitch;
}

/// `variant` 0: arrive, 1: wait for the phase in which the thread arrived.
Next ClusterBarrier(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  if (!op.relaxed && !Gather(*x.kernel, *x.warp, c, active)) return Next::kSwitch;
  if (x.check_sync && !op.relaxed && active != x.warp->alive)
    Report(x, op, Hazard::Kind::kDivergentBarrier, std::countr_zero(active),
           "only some lanes of the warp reach this cluster barrier");
  Separate(*x.warp, c, active);
  Gang& gang = *x.gang;
  if (op.variant == 0) {
    gang.cluster_arrived += static_cast<uint64_t>(std::popcount(active));
    ForLanes(active, [&](int l) { x.cluster_phase[x.ThreadOf(l)] = gang.cluster_phase; });
    CheckClusterBarrier(gang);
  } else {
    bool waits = false;
    ForLanes(active, [&](int l) { waits |= x.cluster_phase[x.ThreadOf(l)] == gang.cluster_phase; });
    if (waits)
      x.warp->groups[c.index].barrier = kClusterBarrier;
    else
      SeeAll(x);
  }
  Normalise(*x.warp);
  return Next::kSwitch;
}

Next WarpSync(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  const uint32_t* masks = x.Source(op.src[0]);
  const uint32_t named = Named(masks, active);
  for (uint32_t m = x.check_sync ? active : 0; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    if ((masks[l] >> l & 1u) == 0) {
      Report(x, op, Hazard::Kind::kInvalidShuffle, l, "executes a warp barrier whose mask does not name it");
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

Next Collective(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  if (active != 0 && active == c.mask && warp.groups.size() > 1) {
    warp.groups[c.index].pc = c.pc;
    if (MustWait(x, op, c.index, c.pc)) {
      warp.groups[c.index].barrier = kCollective;
      Normalise(warp);
      return Next::kSwitch;
    }
    if (warp.groups[c.index].mask != c.mask) {  // others had waited here: start again with them
      Normalise(warp);
      return Next::kSwitch;
    }
  }
  if (x.watch) Watch(x, op);
  const int32_t members = op.src[op.target];
  for (uint32_t left = active; left != 0 && !x.stop;) {
    const uint32_t together = members < 0 ? left : LanesAlike(x.Source(members), left);
    op.run(x, op, together);
    left &= ~together;
  }
  ++c.pc;
  return Next::kContinue;
}

Next CallOrReturn(Exec& x, const Op& op, Cursor& c, uint32_t active, bool call) {
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  Warp& warp = *x.warp;
  Group& group = warp.groups[c.index];
  const uint32_t depth = group.depth;
  group.mask = c.mask & ~active;
  group.pc = c.pc + 1;
  if (call)
    Call(x, op, active, c.pc);
  else
    Return(x, op, active, depth);
  Normalise(warp);
  return Next::kSwitch;
}

}  // namespace

namespace {
Next ChangeFlowAs(Flow flow, Exec& x, const Op& op, Cursor& c, uint32_t active) {
  switch (flow) {
    case Flow::kNone:
      if (x.watch) Watch(x, op);
      if (active != 0) op.run(x, op, active);
      ++c.pc;
      return Next::kContinue;
    case Flow::kBranch:
      return Branch(x, op, c, active);
    case Flow::kBranchIndexed:
      return BranchIndexed(x, op, c, active);
    case Flow::kExit:
      return Exit(x, c, active);
    case Flow::kBarrier:
      return Barrier(x, op, c, active);
    case Flow::kClusterBarrier:
      return ClusterBarrier(x, op, c, active);
    case Flow::kWarpSync:
      return WarpSync(x, op, c, active);
    case Flow::kCollective:
      return Collective(x, op, c, active);
    case Flow::kAligned:
      return Aligned(x, op, c, active);
    case Flow::kCall:
    case Flow::kReturn:
      return CallOrReturn(x, op, c, active, flow == Flow::kCall);
    case Flow::kPatient:
      if (active != 0) op.run(x, op, active);
      if (x.yield && op.variant == kSuspends && x.warp->retries++ < kMostRetries) {
        --x.executed[c.pc].times;
        x.executed[c.pc].lanes -= static_cast<uint64_t>(std::popcount(active));
        x.yield = false;
        return Next::kYield;
      }
      x.warp->retries = 0;
      ++c.pc;
      if (!x.yield) return Next::kContinue;
      x.yield = false;
      return Next::kYield;
    default:
      if (active != 0) Report(x, op, Hazard::Kind::kTrap, std::countr_zero(active), "the kernel trapped");
      ++c.pc;
      return Next::kContinue;
  }
}
}  // namespace

Next ChangeFlow(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  if (op.flow != Flow::kSuspect) return ChangeFlowAs(op.flow, x, op, c, active);
  const Suspect& suspect = x.kernel->suspects.at(c.pc);
  CheckSuspect(x, op, suspect, c.mask, active);
  return ChangeFlowAs(suspect.flow, x, op, c, active);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
