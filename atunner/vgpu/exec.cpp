// Warps, divergence and barriers: runs the blocks of a gang to their end.
#include <algorithm>

#include "atunner/base/clock.h"
#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint32_t kSlice = 20000;    // operations a warp may run before another gets its turn
constexpr uint32_t kSpinLimit = 512;  // backward branches before a diverged sibling gets its turn
constexpr uint32_t kPatience = 16;    // backward branches with polling before other warps get their turn
constexpr size_t kMaxHazards = 16;

/// Merges groups at equal places and sorts by place: the deepest call and then the earliest operation runs first, so
/// that diverged lanes meet again.
void Normalise(Warp& warp) {
  std::erase_if(warp.groups, [](const Group& group) { return group.mask == 0; });
  std::ranges::sort(
      warp.groups, [](const Group& a, const Group& b) { return a.depth != b.depth ? a.depth > b.depth : a.pc < b.pc; });
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
  for (Warp& warp : x.warps) {
    bool any = false;
    for (Group& group : warp.groups) {
      if (group.barrier != id) continue;
      if (group.reduction) WriteReduction(x, warp, group, state, state.arrived);
      group.barrier = -1;
      group.reduction = nullptr;
      any = true;
    }
    if (any) Normalise(warp);
  }
  state = {};
  ++x.epoch;
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
  for (Exec* member : gang.members) {
    ++member->epoch;
    for (Warp& warp : member->warps) {
      bool any = false;
      for (Group& group : warp.groups) {
        if (group.barrier != kClusterBarrier) continue;
        group.barrier = -1;
        any = true;
      }
      if (any) Normalise(warp);
    }
  }
}

void Arrive(Exec& x, const Op& op, Group& group, uint32_t mask) {
  const int first = std::countr_zero(mask);
  const auto id = static_cast<int>(x.Source(op.src[0])[first]);
  if (id < 0 || id > 15)
    return Report(x, op, Hazard::Kind::kDivergentBarrier, first,
                  "barrier number " + std::to_string(id) + " does not exist");
  if (x.check && !op.relaxed && mask != x.warp->alive) {
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

/// A sibling that got its turn early is not divergent yet: it waits for the lanes behind it, which may still come.
/// Those that wait at this very place join the group.
bool WaitsForSiblings(Warp& warp, size_t index, uint32_t pc) {
  const uint32_t depth = warp.groups[index].depth;
  bool behind = false;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    Group& other = warp.groups[i];
    if (i == index || other.mask == 0) continue;
    if (other.barrier == kCollective && other.pc == pc && other.depth == depth) {
      warp.groups[index].mask |= other.mask;
      other.mask = 0;
    }
    const bool earlier = other.depth > depth || (other.depth == depth && other.pc < pc);
    behind |= other.barrier < 0 && other.mask != 0 && earlier;
  }
  return behind;
}

/// Lets the earliest group that waits at a collective go on without the lanes that cannot come.
bool ReleaseCollective(Warp& warp) {
  for (Group& group : warp.groups) {
    if (group.barrier != kCollective) continue;
    group.barrier = -1;
    return true;
  }
  return false;
}

/// The group to run: the first that does not wait; the others take turns when it spins.
int PickGroup(Warp& warp) {
  int first = -1;
  int runnable = 0;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    if (warp.groups[i].barrier >= 0) continue;
    if (first < 0) first = static_cast<int>(i);
    ++runnable;
  }
  if (warp.spins <= kSpinLimit || runnable < 2) return first;
  warp.spins = 0;
  int skip = static_cast<int>(++warp.turn % static_cast<uint32_t>(runnable));
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    if (warp.groups[i].barrier < 0 && skip-- == 0) return static_cast<int>(i);
  }
  return first;
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

void CountDependence(Exec& x, const Op& op) {
  Warp& warp = *x.warp;
  if (warp.pending_loads.empty()) return;
  const auto pending = [&](int32_t slot) {
    return slot >= 0 && std::ranges::find(warp.pending_loads, slot) != warp.pending_loads.end();
  };
  bool waits = std::ranges::any_of(op.src, pending);
  const bool reads_list = op.run != nullptr && op.list_size > 0;
  for (int i = 0; reads_list && !waits && i < op.list_size; ++i)
    waits = pending(x.kernel->lists[op.list + static_cast<size_t>(i)]);
  if (!waits) return;
  ++x.counts.dependent_load_rounds;
  warp.pending_loads.clear();
}

/// The group that runs, and where it is.
struct Cursor {
  size_t index = 0;
  uint32_t pc = 0;
  uint32_t mask = 0;
  uint32_t limit = 0;
};

/// What follows an operation that changes the flow.
enum class Next : uint8_t {
  kContinue,  ///< the same group, at Cursor::pc
  kRegroup,   ///< the group's place is Cursor::pc, and the groups have changed
  kSwitch,    ///< the groups say everything
  kYield      ///< as kRegroup, and other warps have their turn
};

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
    return warp.groups.size() > 1 ? Next::kRegroup : Next::kContinue;
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

Next Barrier(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  ++x.counts.barriers;
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  Warp& warp = *x.warp;
  if (active == c.mask && warp.groups.size() > 1) {
    warp.groups[c.index].pc = c.pc;
    if (WaitsForSiblings(warp, c.index, c.pc)) {
      warp.groups[c.index].barrier = kCollective;
      Normalise(warp);
      return Next::kSwitch;
    }
    active = c.mask = warp.groups[c.index].mask;
  }
  Separate(warp, c, active);
  Arrive(x, op, x.warp->groups[c.index], active);
  Normalise(*x.warp);
  return Next::kSwitch;
}

/// `variant` 0: arrive, 1: wait for the phase in which the thread arrived.
Next ClusterBarrier(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  if (x.check && !op.relaxed && active != x.warp->alive)
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
    if (waits) x.warp->groups[c.index].barrier = kClusterBarrier;
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
  for (uint32_t m = x.check ? active : 0; m != 0; m &= m - 1) {
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
  if (x.count) CountDependence(x, op);
  const int32_t members = op.src[op.target];
  for (uint32_t left = active; left != 0 && !x.stop;) {
    const uint32_t together = members < 0 ? left : LanesAlike(x.Source(members), left);
    op.run(x, op, together);
    left &= ~together;
  }
  ++c.pc;
  return Next::kContinue;
}

Next CallOrReturn(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  Warp& warp = *x.warp;
  Group& group = warp.groups[c.index];
  const uint32_t depth = group.depth;
  group.mask = c.mask & ~active;
  group.pc = c.pc + 1;
  if (op.flow == Flow::kCall)
    Call(x, op, active, c.pc);
  else
    Return(x, op, active, depth);
  Normalise(warp);
  return Next::kSwitch;
}

Next ChangeFlow(Exec& x, const Op& op, Cursor& c, uint32_t active) {
  switch (op.flow) {
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
    case Flow::kCall:
    case Flow::kReturn:
      return CallOrReturn(x, op, c, active);
    case Flow::kPatient:
      if (active != 0) op.run(x, op, active);
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

void NoteLoads(Exec& x, const Op& op) {
  if (op.list_size > 0)
    x.warp->pending_loads.insert(x.warp->pending_loads.end(), x.kernel->lists.begin() + op.list,
                                 x.kernel->lists.begin() + op.list + op.list_size);
  x.loads_pending = false;
}

/// Runs one group until its place is another's, its flow changes or its warp's slice is over.
Next RunGroup(Exec& x, Cursor& c, uint32_t& left) {
  const Op* const ops = x.kernel->ops.data();
  while (left > 0 && !x.stop) {
    if (c.pc == c.limit) return Next::kRegroup;
    const Op& op = ops[c.pc];
    --left;
    uint32_t active = c.mask;
    if (op.guard >= 0) active &= *x.Slot(op.guard) ^ (op.guard_negated ? ~0u : 0u);
    ++x.executed[c.pc];
    x.lanes[c.pc] += static_cast<uint64_t>(std::popcount(active));
    if (op.flow == Flow::kNone) {
      if (x.count) CountDependence(x, op);
      if (active != 0) op.run(x, op, active);
      if (x.count && x.loads_pending) NoteLoads(x, op);
      ++c.pc;
      continue;
    }
    if (const Next next = ChangeFlow(x, op, c, active); next != Next::kContinue) return next;
  }
  return Next::kRegroup;
}

/// Runs the current warp until all its groups wait or have exited, or its slice is over. False = nothing could run.
bool RunWarp(Exec& x) {
  Warp& warp = *x.warp;
  uint32_t left = kSlice;
  bool ran = false;
  while (left > 0 && !x.stop) {
    const int picked = PickGroup(warp);
    if (picked < 0) {
      if (ReleaseCollective(warp)) continue;
      return ran;
    }
    ran = true;
    Cursor c;
    c.index = static_cast<size_t>(picked);
    c.limit = Limit(warp, c.index);
    c.pc = warp.groups[c.index].pc;
    c.mask = warp.groups[c.index].mask;
    const Next next = RunGroup(x, c, left);
    if (next == Next::kSwitch) continue;
    warp.groups[c.index].pc = c.pc;
    Normalise(warp);
    if (c.pc == c.limit) warp.spins = 0;
    if (next == Next::kYield) {
      // A diverged sibling may be what the group waits for.
      warp.spins = kSpinLimit + 1;
      return ran;
    }
  }
  return ran;
}

void ReportDeadlock(Exec& x) {
  for (Warp& warp : x.warps) {
    for (const Group& group : warp.groups) {
      if (group.mask == 0 || group.barrier < 0) continue;
      x.warp = &warp;
      const Op& op = x.kernel->ops[group.pc - 1];
      const std::string which = group.barrier == kWarpBarrier      ? "a warp-level barrier"
                                : group.barrier == kClusterBarrier ? "the cluster's barrier"
                                                                   : "barrier " + std::to_string(group.barrier);
      const uint32_t arrived = group.barrier == kWarpBarrier ? static_cast<uint32_t>(std::popcount(group.mask))
                               : group.barrier == kClusterBarrier
                                   ? static_cast<uint32_t>(x.gang->cluster_arrived)
                                   : x.barriers[static_cast<size_t>(group.barrier)].arrived;
      return Report(x, op, Hazard::Kind::kDeadlock, std::countr_zero(group.mask),
                    "waits for ever at " + which + ": " + std::to_string(arrived) + " of " +
                        std::to_string(x.alive_threads) + " threads arrived");
    }
  }
}

void InitialiseBlock(Exec& x, uint64_t block) {
  const Launch& launch = *x.launch;
  const Dim3& grid = launch.shape.grid;
  x.block = block;
  x.ctaid = {static_cast<uint32_t>(block % grid.x), static_cast<uint32_t>(block / grid.x % grid.y),
             static_cast<uint32_t>(block / grid.x / grid.y)};
  x.epoch = 1;
  x.barriers = {};
  x.instructions = 0;
  x.alive_threads = x.threads;
  if (x.check) {
    std::ranges::fill(x.shadow, SharedShadow{});
    for (auto& pending : x.pending) pending.clear();
    std::ranges::fill(x.copy_group, 0u);
  }
  for (Warp& warp : x.warps) {
    const uint32_t first = warp.index * kLanes;
    const uint32_t lanes = std::min<uint32_t>(kLanes, x.threads - first);
    warp.alive = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warp.groups.assign(1, Group{0, warp.alive, -1, nullptr, 0});
    warp.sync_epoch = 1;
    warp.spins = 0;
    warp.pending_loads.clear();
    for (auto& stack : warp.stack) stack.clear();
  }
  x.cluster_phase.assign(x.threads, ~0u);
  x.unwritten.reset();
  x.yield = false;
}

/// One round over the warps of a block; what happened in it.
struct Round {
  bool alive = false;
  bool ran = false;
};
Round RunRound(Exec& x) {
  Round round;
  for (Warp& warp : x.warps) {
    if (warp.alive == 0) continue;
    round.alive = true;
    x.warp = &warp;
    round.ran |= RunWarp(x);
    if (x.stop) break;
  }
  return round;
}

/// A read of unwritten memory comes first in the report, unless a race explains it.
void ReportUnwrittenReads(Exec& x) {
  if (!x.unwritten) return;
  x.stop = true;
  if (x.hazards.empty() || x.hazards[0].kind != Hazard::Kind::kRace) x.hazards.insert(x.hazards.begin(), *x.unwritten);
  x.unwritten.reset();
}

void FinishBlock(Exec& x) {
  ++x.counts.blocks;
  x.counts.warps += x.warps.size();
  if (!x.count) return;
  x.counts.unique_load_sectors += x.load_sectors.size();
  x.counts.unique_store_sectors += x.store_sectors.size();
  x.load_sectors.clear();
  x.store_sectors.clear();
}

}  // namespace

namespace {
Hazard Describe(const Exec& x, const Op& op, Hazard::Kind kind, int lane, const std::string& what) {
  Hazard hazard;
  hazard.kind = kind;
  hazard.kernel = x.kernel->function->name;
  const std::string file = x.launch->module->SourceFile(op.source_file);
  const size_t slash = file.rfind('/');
  hazard.where = op.source_line ? (slash == std::string::npos ? file : file.substr(slash + 1)) + ":" +
                                      std::to_string(op.source_line)
                                : "PTX line " + std::to_string(op.line);
  hazard.detail =
      "block " + std::to_string(x.block) + ", thread " + std::to_string(x.warp ? x.ThreadOf(lane) : 0) + " " + what;
  return hazard;
}
}  // namespace

void Report(Exec& x, const Op& op, Hazard::Kind kind, int lane, const std::string& what) {
  x.stop = true;
  if (x.hazards.size() < kMaxHazards) x.hazards.push_back(Describe(x, op, kind, lane, what));
}

void ReportUnwritten(Exec& x, const Op& op, int lane, const std::string& what) {
  if (!x.unwritten) x.unwritten = Describe(x, op, Hazard::Kind::kUninitialisedShared, lane, what);
}

uint32_t LanesAlike(const uint32_t* slot, uint32_t mask) {
  const uint32_t value = slot[std::countr_zero(mask)];
  uint32_t alike = 0;
  for (int l = 0; l < kLanes; ++l) alike |= (slot[l] == value ? 1u : 0u) << l;
  return alike & mask;
}

void Prepare(Exec& x, const Launch& launch) {
  x.launch = &launch;
  x.kernel = launch.kernel;
  x.check = launch.check;
  x.count = launch.count;
  x.threads = static_cast<uint32_t>(launch.shape.block.Count());
  const uint32_t warps = (x.threads + kLanes - 1) / kLanes;
  x.warps.resize(warps);
  for (uint32_t i = 0; i < warps; ++i) {
    x.warps[i].index = i;
    x.warps[i].registers.assign(static_cast<size_t>(launch.kernel->register_slots) * kLanes, 0);
  }
  const size_t shared = launch.kernel->dynamic_shared_offset + launch.shape.dynamic_shared_bytes;
  x.shared.resize(std::max<size_t>(launch.kernel->static_shared,
                                   launch.shape.dynamic_shared_bytes ? shared : launch.kernel->static_shared));
  x.local.resize(size_t{launch.kernel->local_bytes} * x.threads);
  x.cluster_phase.assign(x.threads, 0);
  if (x.check) {
    x.shadow.resize((x.shared.size() + 3) / 4 + 8);
    x.pending.resize(x.threads);
    x.copy_group.resize(x.threads);
  }
  x.executed.assign(launch.kernel->ops.size(), 0);
  x.lanes.assign(launch.kernel->ops.size(), 0);
}

void RunGang(Gang& gang, const std::vector<uint64_t>& blocks, double deadline, uint64_t budget,
             LaunchOutcome& outcome) {
  gang.cluster_arrived = 0;
  gang.cluster_phase = 0;
  for (size_t i = 0; i < gang.members.size(); ++i) {
    gang.members[i]->gang = &gang;
    gang.members[i]->rank = static_cast<uint32_t>(i);
    InitialiseBlock(*gang.members[i], blocks[i]);
  }
  uint64_t slices = 0;
  uint64_t rounds = 0;
  const auto stopped = [&] { return std::ranges::any_of(gang.members, [](const Exec* x) { return x->stop; }); };
  while (!stopped()) {
    Round all;
    for (Exec* member : gang.members) {
      const Round round = RunRound(*member);
      all.alive |= round.alive;
      all.ran |= round.ran;
      if (member->stop) return ReportUnwrittenReads(*member);
      slices += member->warps.size();
    }
    if (!all.alive) break;
    if (!all.ran) {
      for (Exec* member : gang.members) {
        if (member->alive_threads == 0) continue;
        ReportDeadlock(*member);
        return ReportUnwrittenReads(*member);
      }
    }
    if (slices * kSlice / 4 > budget || (++rounds % 64 == 0 && SystemClock().Now() > deadline)) {
      outcome.kind = LaunchOutcome::Kind::kTimeout;
      outcome.message = "block " + std::to_string(blocks[0]) + " did not end within its limit";
      for (Exec* member : gang.members) ReportUnwrittenReads(*member);
      return;
    }
  }
  for (Exec* member : gang.members) {
    ReportUnwrittenReads(*member);
    FinishBlock(*member);
  }
}

void CollectCounts(const Exec& x, Counts& counts) {
  counts += x.counts;
  for (size_t i = 0; i < x.executed.size(); ++i) {
    const auto op_class = static_cast<size_t>(x.kernel->ops[i].op_class);
    counts.warp_instructions[op_class] += x.executed[i];
    counts.thread_instructions[op_class] += x.lanes[i];
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
