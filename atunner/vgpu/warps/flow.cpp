#include "atunner/vgpu/warps/flow.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/cluster_shadow.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/checks/shuffled_values.h"
#include "atunner/vgpu/warps/barriers.h"
#include "atunner/vgpu/warps/joint_collective.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

namespace {
bool RunsBefore(const Group& a, const Group& b) {
  return a.depth != b.depth ? a.depth > b.depth : a.pc < b.pc;
}
}  // namespace

void Normalise(Warp& warp) {
  if (warp.groups.size() == 1 && warp.groups.front().mask != 0) return;
  std::erase_if(warp.groups, [](const Group& group) { return group.mask == 0; });
  // Insertion sort: there are few groups, and all but one are in order.
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

constexpr uint32_t kMostRetries = 1000;  // attempts of a suspended try_wait until its time limit
// Backward branches of a polling loop before other warps run.
constexpr uint32_t kPollsBeforeYield = 16;

/// True if a collective at `pc` must wait for other lanes of the warp. Lanes that already wait
/// there join the group.
bool MustWait(BlockState& x, const Op& op, size_t index, uint32_t pc) {
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

/// True if the running group would be picked again at its new position, and merges with no other.
bool StaysFirst(const Warp& warp, const Cursor& c) {
  if (warp.groups.size() == 1) return true;
  if (c.index != 0 || warp.spins > kSpinLimit) return false;
  const Group& next = warp.groups[1];
  return next.depth != warp.groups[0].depth || c.pc < next.pc;
}

/// True if the warp's registers are as they were at the last call: its loop only polls.
bool Repeats(Warp& warp) {
  uint64_t digest = 0;
  for (const SlotLanes& slot : warp.file) {
    for (const uint32_t value : slot.lanes) digest = Mix64(digest ^ value);
  }
  return std::exchange(warp.waited_with, digest) == digest;
}

/// The operation behind the loop that ends with this backward branch. A loop without a condition at
/// its end is left by a branch inside it.
std::optional<uint32_t> BehindLoop(const BlockState& x, const Op& op, uint32_t pc) {
  if (op.guard >= 0) return pc + 1;
  for (uint32_t i = op.target; i < pc; ++i) {
    const Op& inside = x.kernel->ops[i];
    if (FlowOf(*x.kernel, inside) == Flow::kBranch && inside.guard >= 0 && inside.target > pc)
      return inside.target;
  }
  return std::nullopt;
}

/// A warp branches back from `pc` after it polled memory. True if it waits for another warp or
/// block. If only a sample of the blocks runs, the others never come: then the loop is left when
/// all warps of the block wait.
bool WaitsForOthers(BlockState& x, const Op& op, Cursor& c, uint32_t pc) {
  Warp& warp = *x.warp;
  const bool known = std::ranges::find(x.progress.polling_loops, pc) !=
                     x.progress.polling_loops.end();
  const bool repeats = known || (x.launch->sampled && Repeats(warp));
  if (!repeats && warp.spins <= kPollsBeforeYield) return false;
  x.progress.polled = false;
  const auto behind = repeats && x.progress.leave_polling_loops ? BehindLoop(x, op, pc)
                                                                : std::nullopt;
  if (!behind) return true;
  if (!known) x.progress.polling_loops.push_back(pc);
  // Only one warp leaves its loop at a time: a warp far ahead would break its block's barriers.
  x.progress.leave_polling_loops = false;
  warp.groups[c.index].pc = c.pc = *behind;
  warp.spins = 0;
  return false;
}

Next Branch(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  ++x.counting.total.branches;
  if (op.target <= c.pc && active != 0) ++warp.spins;
  if (active == c.mask) {
    const uint32_t from = c.pc;
    const bool backward = op.target <= from;
    c.pc = op.target;
    // After a backward branch other groups may be ahead, which bound the run again.
    warp.groups[c.index].pc = c.pc;
    if (x.progress.polled && backward && WaitsForOthers(x, op, c, from)) return Next::kYield;
    c.limit = Limit(warp, c.index);
    return StaysFirst(warp, c) ? Next::kContinue : Next::kRegroup;
  }
  if (active == 0) {
    ++c.pc;
    return Next::kContinue;
  }
  ++x.counting.total.divergent_branches;
  // iterations that all lanes execute together are not spinning
  if (warp.groups.size() == 1) warp.spins = 0;
  warp.groups[c.index].mask = c.mask & ~active;
  warp.groups.push_back({op.target, active, -1, nullptr, warp.groups[c.index].depth});
  ++c.pc;
  return Next::kRegroup;
}

Next BranchIndexed(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
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
    warp.groups.push_back({static_cast<uint32_t>(x.kernel->lists[op.list + selector[l]]), 1u << l,
                           -1, nullptr, depth});
  }
  ++c.pc;
  return Next::kRegroup;
}

Next Exit(BlockState& x, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  warp.alive &= ~active;
  x.progress.alive_threads -= static_cast<uint64_t>(std::popcount(active));
  warp.groups[c.index].mask = c.mask & ~active;
  ++c.pc;
  if (active != 0) {
    warp.groups[c.index].pc = c.pc;
    if (x.progress.alive_threads == 0 && x.checks.any && !x.stop) CheckLastRemoteAccess(x);
    CheckBarriers(x);
  }
  return Next::kRegroup;
}

/// Executes a collective together with lanes that wait for it elsewhere, if these are all that its
/// mask names.
bool Joins(BlockState& x, const Op& op, Cursor& c) {
  Warp& warp = *x.warp;
  const uint32_t named = Named(x.Source(op.src[op.target]), c.mask);
  if ((named & warp.alive & ~c.mask) == 0) return false;
  const std::vector<size_t> partners = PartnersElsewhere(x, op, c.index, named);
  if (partners.empty()) return false;
  if (x.watch) Watch(x, op);
  RunJointly(x, op, c.mask, partners);
  warp.groups[c.index].pc = ++c.pc;
  Normalise(warp);
  return true;
}

Next Collective(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
  Warp& warp = *x.warp;
  if (active != 0 && active == c.mask && warp.groups.size() > 1) {
    warp.groups[c.index].pc = c.pc;
    if (Joins(x, op, c)) return Next::kSwitch;
    if (MustWait(x, op, c.index, c.pc)) {
      warp.groups[c.index].barrier = kCollective;
      Normalise(warp);
      return Next::kSwitch;
    }
    if (warp.groups[c.index].mask !=
        c.mask) {  // other lanes had waited here: start again with them
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

Next CallOrReturn(BlockState& x, const Op& op, Cursor& c, uint32_t active, bool call) {
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
Next ChangeFlowAs(Flow flow, BlockState& x, const Op& op, Cursor& c, uint32_t active) {
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
    case Flow::kReadsTime:
      if (active != 0) op.run(x, op, active);
      ++c.pc;
      return Next::kContinue;
    case Flow::kMayYield:
      x.progress.polled = false;  // the wait is for the warp's own block
      if (active != 0) op.run(x, op, active);
      if (x.progress.yield && op.variant == kSuspends && x.warp->retries++ < kMostRetries) {
        --x.counting.executed[c.pc].times;
        x.counting.executed[c.pc].lanes -= static_cast<uint64_t>(std::popcount(active));
        x.progress.yield = false;
        return Next::kYield;
      }
      x.warp->retries = 0;
      ++c.pc;
      if (!x.progress.yield) return Next::kContinue;
      x.progress.yield = false;
      return Next::kYield;
    default:
      if (active != 0)
        Report(x, op, Hazard::Kind::kTrap, std::countr_zero(active), "the kernel trapped");
      ++c.pc;
      return Next::kContinue;
  }
}
}  // namespace

Next ChangeFlow(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
  if (x.shuffled.tracked) FollowShuffled(x, op, c.mask, active);
  if (op.flow != Flow::kMaybeUndefined) return ChangeFlowAs(op.flow, x, op, c, active);
  const MaybeUndefined& use = x.kernel->maybe_undefined.at(c.pc);
  CheckMaybeUndefined(x, op, use, c.mask, active);
  const Next next = ChangeFlowAs(use.flow, x, op, c, active);
  if (use.keeps && !x.stop) KeepUndefined(x, op, use, active);
  return next;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
