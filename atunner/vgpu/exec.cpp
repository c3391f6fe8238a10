// Runs the blocks of a gang to their end.
#include <algorithm>

#include "atunner/base/clock.h"
#include "atunner/vgpu/flow.h"
#include "atunner/vgpu/pending.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint32_t kSlice = 20000;  // operations a warp may run before another gets its turn
constexpr size_t kMaxHazards = 16;
constexpr uint64_t kEndlessRounds = 1000;

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
      if (x.watch) Watch(x, op);
      if (active != 0) op.run(x, op, active);
      if (x.count) Advance(x, op, c.pc, active != 0);
      ++c.pc;
      continue;
    }
    if (x.count) {
      Advance(x, op, c.pc, active != 0);
      const bool jumps = op.flow == Flow::kBranch || op.flow == Flow::kBranchIndexed;
      if (op.flow != Flow::kCollective && op.flow != Flow::kWarpSync)
        EndStretch(x, jumps && active != 0 ? x.launch->latencies.branch : 0);
    }
    if (const Next next = ChangeFlow(x, op, c, active); next != Next::kContinue) return next;
  }
  return Next::kRegroup;
}

/// Runs the current warp until all its groups wait or have exited, or its slice is over. False = nothing could run.
bool RunWarp(Exec& x) {
  Warp& warp = *x.warp;
  x.watch = !warp.products.empty();
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
      if (group.barrier == kGroupBarrier)
        return Report(x, op, Hazard::Kind::kDeadlock, 0, "waits for ever for the other warps of its warp group");
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

bool WaitsForPhase(const Exec& x, const Group& group) {
  if (group.barrier >= 0 || group.pc == 0) return false;
  const Op& op = x.kernel->ops[group.pc - 1];
  return op.flow == Flow::kPatient && op.space == Space::kShared;
}

/// Whether nobody can go on but by an mbarrier's phase, and the epochs of all blocks as one number.
bool AllWait(const Gang& gang, uint64_t& epochs) {
  epochs = 0;
  for (const Exec* member : gang.members) {
    epochs += member->epoch;
    for (const Warp& warp : member->warps) {
      for (const Group& group : warp.groups) {
        if (group.mask != 0 && group.barrier < 0 && !WaitsForPhase(*member, group)) return false;
      }
    }
  }
  return true;
}

void ReportEndlessWait(Exec& x) {
  for (Warp& warp : x.warps) {
    for (const Group& group : warp.groups) {
      if (group.mask == 0 || !WaitsForPhase(x, group)) continue;
      x.warp = &warp;
      return Report(x, x.kernel->ops[group.pc - 1], Hazard::Kind::kDeadlock, std::countr_zero(group.mask),
                    "waits for ever: the phase of its mbarrier does not end");
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
    std::ranges::fill(x.bulk_groups, 0u);
    x.async_reads.clear();
    x.landings.clear();
    x.phase_epoch.clear();
    x.proxy_seen = 0;
  }
  for (Warp& warp : x.warps) {
    const uint32_t first = warp.index * kLanes;
    const uint32_t lanes = std::min<uint32_t>(kLanes, x.threads - first);
    warp.alive = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warp.groups.assign(1, Group{0, warp.alive, -1, nullptr, 0});
    warp.sync_epoch = 1;
    warp.seen_epoch = warp.proxy_epoch = warp.product_groups = 0;
    warp.products.clear();
    std::ranges::fill(warp.held, kFree);
    warp.spins = 0;
    for (auto& stack : warp.stack) stack.clear();
  }
  x.cluster_phase.assign(x.threads, ~0u);
  if (x.count) {
    x.times.resize(x.warps.size());
    for (WarpTime& time : x.times) {
      std::vector<Moment> ready = std::move(time.ready);
      time = {};
      ready.assign(x.kernel->register_slots + kPaddingSlots, Moment{});
      time.ready = std::move(ready);
    }
  }
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
  const Moment end = EndOfBlock(x);
  for (size_t i = 0; i < end.size(); ++i) x.counts.path[i] += end[i];
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
    x.warps[i].registers.assign((static_cast<size_t>(launch.kernel->register_slots) + kPaddingSlots) * kLanes, 0);
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
    x.bulk_groups.resize(x.threads);
  }
  x.executed.assign(launch.kernel->ops.size(), 0);
  x.lanes.assign(launch.kernel->ops.size(), 0);
}

void RunGang(Gang& gang, const std::vector<uint64_t>& blocks, double deadline, uint64_t budget,
             LaunchOutcome& outcome) {
  gang.cluster_arrived = 0;
  gang.cluster_phase = 0;
  gang.arrivals.clear();
  for (size_t i = 0; i < gang.members.size(); ++i) {
    gang.members[i]->gang = &gang;
    gang.members[i]->rank = static_cast<uint32_t>(i);
    InitialiseBlock(*gang.members[i], blocks[i]);
  }
  uint64_t slices = 0;
  uint64_t rounds = 0;
  uint64_t quiet_rounds = 0;  // in which all waited and no phase ended
  uint64_t last_epochs = 0;
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
    uint64_t epochs = 0;
    quiet_rounds = AllWait(gang, epochs) && epochs == last_epochs ? quiet_rounds + 1 : 0;
    last_epochs = epochs;
    if (quiet_rounds > kEndlessRounds) {
      for (Exec* member : gang.members) {
        if (member->stop || member->alive_threads == 0) continue;
        ReportEndlessWait(*member);
        if (member->stop) return ReportUnwrittenReads(*member);
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
  uint64_t code = 0;
  for (size_t i = 0; i < x.executed.size(); ++i) {
    const auto op_class = static_cast<size_t>(x.kernel->ops[i].op_class);
    counts.warp_instructions[op_class] += x.executed[i];
    counts.thread_instructions[op_class] += x.lanes[i];
    if (x.executed[i] == 0) continue;
    const OpCost& cost = x.kernel->tracks[i].cost;
    counts.issued += x.executed[i] * cost.issue;
    code += cost.issue;
    for (size_t pipe = 0; pipe < kPipes; ++pipe) counts.pipe_uses[pipe] += x.executed[i] * cost.uses[pipe];
  }
  counts.code_instructions = std::max(counts.code_instructions, code);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
