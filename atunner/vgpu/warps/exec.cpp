// The main loop: runs co-scheduled blocks to their end, warp by warp.
#include <algorithm>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/checks/shuffled_values.h"
#include "atunner/vgpu/instructions/fused.h"
#include "atunner/vgpu/timeline/in_order.h"
#include "atunner/vgpu/warps/flow.h"
#include "atunner/vgpu/warps/grid_progress.h"
#include "atunner/vgpu/warps/prepare.h"
#include "atunner/vgpu/warps/work.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint64_t kEndlessRounds = 1000;
constexpr uint64_t kWaitingRounds = 32;  // without progress, before the next block joins

/// Lets the first group that waits at a collective continue without the lanes that cannot arrive.
bool ReleaseCollective(Warp& warp) {
  for (Group& group : warp.groups) {
    if (group.barrier != kCollective) continue;
    group.barrier = -1;
    return true;
  }
  return false;
}

/// Index of the group to run: the first that does not wait, or the next in turn while groups spin.
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

void RunWatched(BlockState& x, const Op& op, uint32_t pc, uint32_t mask, uint32_t active) {
  Watch(x, op);
  if (x.shuffled.tracked) FollowShuffled(x, op, mask, active);
  const OpCounts before = x.counting.by_line ? OpCounts::Of(x.counting.total) : OpCounts{};
  if (active != 0) op.run(x, op, active);
  if (x.counting.by_line) x.counting.by_op[pc] += OpCounts::Of(x.counting.total) - before;
}

Next ChangeFlowCounted(BlockState& x, const Op& op, Cursor& c, uint32_t active) {
  const uint32_t pc = c.pc;
  const OpCounts before = OpCounts::Of(x.counting.total);
  const Next next = ChangeFlow(x, op, c, active);
  x.counting.by_op[pc] += OpCounts::Of(x.counting.total) - before;
  return next;
}

uint32_t ActiveLanes(const BlockState& x, const Op& op, uint32_t mask) {
  return op.guard < 0 ? mask : mask & (*x.Source(op.guard) ^ (op.guard_negated ? ~0u : 0u));
}

/// Notes operations without flow that have run, if the timeline must treat them one by one.
void NoteRun(BlockState& x, uint32_t first, uint32_t end, bool active) {
  const uint8_t* marks = x.launch->timing.marks.data();
  for (uint32_t pc = first; pc < end; ++pc) {
    if (marks[pc] != 0 || !active || x.timing.touch.level != Touch::Level::kNone)
      Note(x, pc, active);
  }
}

/// Runs the operations of a basic block, whose flow is kNone, up to `end`. Their executions are
/// counted in a difference array: +1 at the begin, -1 at the end.
template <bool kObserved>
void RunBasicBlock(BlockState& x, Cursor& c, uint32_t end) {
  const Op* const ops = x.kernel->ops.data();
  const auto lanes = static_cast<uint64_t>(std::popcount(c.mask));
  ++x.spans.basic_block;
  x.counting.basic_blocks[c.pc].times += 1;
  x.counting.basic_blocks[c.pc].lanes += lanes;
  const bool watch = kObserved && x.watch;
  const bool timed = kObserved && x.timing.enabled;
  const Handler fma = watch || c.mask != ~0u ? nullptr : kPlainFma;
  uint32_t pc = c.pc;
  x.timing.next = pc;
  // An operation may begin to watch; then the block is left, and goes on observed.
  while (pc < end && !x.stop && (kObserved || !x.watch)) {
    const Op& op = ops[pc];
    if (op.run == fma && op.guard < 0) {
      const uint32_t first = pc;
      pc = RunFmas(*x.warp, ops, pc, end, fma);
      if (timed) NoteRun(x, first, pc, true);
      continue;
    }
    uint32_t active = c.mask;
    if (op.guard >= 0) {
      active = ActiveLanes(x, op, c.mask);
      x.counting.executed[pc].lanes -= lanes - static_cast<uint64_t>(std::popcount(active));
    }
    if (timed) x.timing.op = pc;
    if (watch) {
      RunWatched(x, op, pc, c.mask, active);
    } else if (active != 0) {
      op.run(x, op, active);
    }
    if (timed) NoteRun(x, pc, pc + 1, active != 0);
    ++pc;
  }
  if (timed) PassTime(x, pc);
  x.counting.basic_blocks[pc].times -= 1;
  x.counting.basic_blocks[pc].lanes -= lanes;
  c.pc = pc;
}

/// Counts instructions that all lanes jump over, because the assembler predicates them and they are
/// issued nevertheless.
void CountSkipped(BlockState& x, uint32_t branch, uint32_t end) {
  for (uint32_t i = branch + 1; i < end; ++i) {
    const OpCost& cost = x.kernel->tracks[i].cost;
    x.counting.total.issued += cost.issue;
    for (size_t pipe = 0; pipe < kPipes; ++pipe)
      x.counting.total.pipe_uses[pipe] += cost.uses[pipe];
    if (x.timing.enabled) x.timing.warps[x.warp->index].slots += cost.issue;
  }
}

/// Machine instructions, by op_cost.def, that are issued under false predicates in place of a
/// branch.
uint64_t PassedOver(const BlockState& x, uint32_t branch, uint32_t end) {
  uint64_t instructions = 0;
  for (uint32_t i = branch + 1; i < end; ++i) instructions += x.kernel->tracks[i].cost.issue;
  return instructions;
}

/// Runs one group until it reaches another one, its flow changes, or its warp's slice is over.
Next RunGroup(BlockState& x, Cursor& c, uint32_t& left) {
  const Op* const ops = x.kernel->ops.data();
  const uint32_t* const clocks = x.kernel->clocks.empty() ? nullptr : x.kernel->clocks.data();
  ++x.spans.basic_block;  // cached spans are those of another warp or group
  while (left > 0 && !x.stop) {
    if (c.pc == c.limit) return Next::kRegroup;
    if (const uint32_t end = x.kernel->flow_ops[c.pc]; end != c.pc) {
      const uint32_t first = c.pc;
      const uint32_t room = std::min(left, (c.limit > first ? c.limit : end) - first);
      const uint32_t stop = first + std::min(end - first, room);
      x.watch || x.timing.enabled ? RunBasicBlock<true>(x, c, stop)
                                  : RunBasicBlock<false>(x, c, stop);
      left -= c.pc - first;
      if (clocks != nullptr) x.warp->clocks += clocks[c.pc] - clocks[first];
      continue;
    }
    const Op& op = ops[c.pc];
    --left;
    if (clocks != nullptr) x.warp->clocks += clocks[c.pc + 1] - clocks[c.pc];
    const uint32_t active = ActiveLanes(x, op, c.mask);
    ++x.counting.executed[c.pc].times;
    x.counting.executed[c.pc].lanes += static_cast<uint64_t>(std::popcount(active));
    if (x.timing.enabled) Advance(x, op, c.pc, active != 0);
    if (x.timing.enabled && x.launch->schedule && x.launch->schedule->converted[c.pc] != 0 &&
        active == c.mask)
      x.timing.predicated_off += PassedOver(x, c.pc, op.target);
    if (x.counting.enabled && x.launch->schedule == nullptr) {
      const bool predicated = x.kernel->tracks[c.pc].predicated;
      if (predicated && active == c.mask) CountSkipped(x, c.pc, op.target);
      if (x.timing.enabled && op.flow != Flow::kCollective && op.flow != Flow::kWarpSync &&
          !predicated) {
        const bool jumps = op.flow == Flow::kBranch || op.flow == Flow::kBranchIndexed;
        EndBasicBlock(x, jumps && active != 0 ? x.launch->latencies.branch : 0);
      }
    }
    const Next next = x.counting.by_line ? ChangeFlowCounted(x, op, c, active)
                                         : ChangeFlow(x, op, c, active);
    if (next != Next::kContinue) return next;
  }
  return Next::kRegroup;
}

/// Runs the current warp until all its groups wait or have exited, or its slice is over. False if
/// no group could run.
bool RunSlice(BlockState& x, uint32_t& left) {
  Warp& warp = *x.warp;
  x.watch = x.counting.by_line || !warp.products.empty() || x.shuffled.tracked;
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
      // The group may wait for another group of its warp.
      warp.spins = kSpinLimit + 1;
      x.progress.yielded = true;
      return ran;
    }
  }
  return ran;
}

bool RunWarp(BlockState& x, uint32_t turn) {
  uint32_t left = turn;
  const bool ran = RunSlice(x, left);
  x.progress.instructions += turn - left;
  return ran;
}

std::string BarrierName(int barrier) {
  return barrier == kWarpBarrier      ? "a warp-level barrier"
         : barrier == kClusterBarrier ? "the cluster's barrier"
                                      : "barrier " + std::to_string(barrier);
}

uint32_t ArrivedThreads(const BlockState& x, const Group& group) {
  if (group.barrier == kWarpBarrier) return static_cast<uint32_t>(std::popcount(group.mask));
  if (group.barrier == kClusterBarrier) return static_cast<uint32_t>(x.peers->cluster_arrived);
  return x.progress.barriers[static_cast<size_t>(group.barrier)].arrived;
}

void ReportDeadlock(BlockState& x) {
  for (Warp& warp : x.warps) {
    for (const Group& group : warp.groups) {
      if (group.mask == 0 || group.barrier < 0) continue;
      x.warp = &warp;
      const Op& op = x.kernel->ops[group.pc - 1];
      if (group.barrier == kGroupBarrier)
        return Report(x, op, Hazard::Kind::kDeadlock, 0,
                      "waits for ever for the other warps of its warp group");
      return Report(x, op, Hazard::Kind::kDeadlock, std::countr_zero(group.mask),
                    "waits for ever at " + BarrierName(group.barrier) + ": " +
                        std::to_string(ArrivedThreads(x, group)) + " of " +
                        std::to_string(x.progress.alive_threads) + " threads arrived");
    }
  }
}

/// Reports where a warp was when the instruction budget was used up.
void ReportEndless(const CoScheduledBlocks& peers) {
  for (BlockState* member : peers.members) {
    for (Warp& warp : member->warps) {
      for (const Group& group : warp.groups) {
        if (group.mask == 0 || group.barrier >= 0 || !member->launch->options.keep_going) continue;
        member->warp = &warp;
        return Report(*member, member->kernel->ops[group.pc], Hazard::Kind::kInstructionBudget,
                      std::countr_zero(group.mask),
                      "was still running after as many instructions as a block may execute");
      }
    }
  }
}

/// The mbarrier wait at which the lanes are suspended, or which has just failed; else nullptr.
const Op* PhaseWait(const BlockState& x, const Warp& warp, const Group& group) {
  if (group.barrier >= 0) return nullptr;
  const auto at = [&](size_t pc) -> const Op* {
    const Op& op = x.kernel->ops[pc];
    return FlowOf(*x.kernel, op) == Flow::kMayYield && op.space == Space::kShared ? &op : nullptr;
  };
  const Op* suspended = warp.retries > 0 ? at(group.pc) : nullptr;
  return suspended != nullptr || group.pc == 0 ? suspended : at(group.pc - 1);
}

/// True if all groups wait, for barriers or mbarriers. `epochs` becomes the sum of the blocks'
/// epochs, which changes when a phase ends.
bool AllWait(const CoScheduledBlocks& peers, uint64_t& epochs) {
  epochs = 0;
  for (const BlockState* member : peers.members) {
    epochs += member->shadow.epoch;
    for (const Warp& warp : member->warps) {
      for (const Group& group : warp.groups) {
        if (group.mask != 0 && group.barrier < 0 && PhaseWait(*member, warp, group) == nullptr)
          return false;
      }
    }
  }
  return true;
}

void ReportEndlessWait(BlockState& x) {
  for (Warp& warp : x.warps) {
    for (const Group& group : warp.groups) {
      const Op* wait = group.mask == 0 ? nullptr : PhaseWait(x, warp, group);
      if (wait == nullptr) continue;
      x.warp = &warp;
      return Report(x, *wait, Hazard::Kind::kDeadlock, std::countr_zero(group.mask),
                    "waits for ever: the phase of its mbarrier does not end");
    }
  }
}

/// What happened in one round over the warps of a block.
struct Round {
  bool alive = false;
  bool ran = false;
  bool progress = false;  ///< a warp did more than poll for other threads
};
Round RunRound(BlockState& x, uint32_t turn) {
  Round round;
  for (Warp& warp : x.warps) {
    if (warp.alive == 0) continue;
    round.alive = true;
    x.warp = &warp;
    x.progress.yielded = false;
    const bool ran = RunWarp(x, turn);
    round.ran |= ran;
    round.progress |= ran && !x.progress.yielded;
    if (x.stop) break;
  }
  return round;
}

/// Puts a read of unwritten memory first in the report, unless a race explains it.
void ReportUnwrittenReads(BlockState& x) {
  if (!x.shadow.unwritten_read) return;
  const bool raced = std::ranges::any_of(
      x.log.hazards, [](const Hazard& h) { return h.kind == Hazard::Kind::kRace; });
  const auto same = std::ranges::find_if(x.log.hazards, [&](const Hazard& h) {
    return h.kind == x.shadow.unwritten_read->kind && h.where == x.shadow.unwritten_read->where;
  });
  if (same != x.log.hazards.end()) {
    same->count += x.shadow.unwritten_read->count;
  } else if (!raced) {
    x.stop = true;
    x.log.hazards.insert(x.log.hazards.begin(), *x.shadow.unwritten_read);
    for (auto& [key, index] : x.log.reported) ++index;
  }
  x.shadow.unwritten_read.reset();
}

void FinishBlock(BlockState& x) {
  ++x.counting.total.blocks;
  x.counting.total.warps += x.warps.size();
  if (!x.counting.enabled) return;
  const Moment end = x.timing.enabled ? EndOfBlock(x) : Moment{};
  for (size_t i = 0; i < end.size(); ++i) {
    x.counting.total.path[i] += end[i];
    x.counting.total.longest_path[i] = std::max(x.counting.total.longest_path[i], end[i]);
  }
  x.counting.total.global.unique_load_sectors += x.counting.load_sectors.size();
  x.counting.total.global.unique_store_sectors += x.counting.store_sectors.size();
  x.counting.store_sectors.ForLines([&](uint64_t line, uint32_t sectors) {
    x.counting.total.global.updated_sectors += static_cast<uint64_t>(
        std::popcount(sectors & x.counting.load_sectors.SectorsOf(line)));
  });
  x.counting.common_sectors.Meet(x.counting.load_sectors);
  x.counting.total.global.atomic_units.EndBlock();
  x.counting.load_sectors.Clear();
  x.counting.store_sectors.Clear();
}

}  // namespace

uint32_t LanesAlike(const uint32_t* slot, uint32_t mask) {
  const uint32_t value = slot[std::countr_zero(mask)];
  uint32_t alike = 0;
  for (int l = 0; l < kLanes; ++l) alike |= (slot[l] == value ? 1u : 0u) << l;
  return alike & mask;
}

namespace {

void Start(CoScheduledBlocks& peers, size_t i) {
  peers.members[i]->peers = &peers;
  peers.members[i]->cluster.rank = peers.members[i]->launch->cluster.Count() > 1
                                       ? static_cast<uint32_t>(i)
                                       : 0;
  InitialiseBlock(*peers.members[i], peers.blocks[i]);
}

/// Adds the next block of the grid: blocks that wait for each other by polling global memory must
/// run side by side.
void JoinNextBlock(CoScheduledBlocks& peers) {
  uint64_t block = 0;
  BlockState* member = peers.next ? peers.next(block) : nullptr;
  if (member == nullptr) return;
  peers.members.push_back(member);
  peers.blocks.push_back(block);
  Start(peers, peers.members.size() - 1);
}

/// Runs co-scheduled blocks round by round.
class RoundLoop {
 public:
  RoundLoop(CoScheduledBlocks& blocks, const RunLimits& limits, LaunchOutcome& outcome)
      : blocks_(blocks), limits_(limits), outcome_(outcome) {}

  /// True if all blocks have completed, or done as much work as they may.
  bool Run() {
    const uint64_t before = WorkDone();
    while (!Stopped()) {
      if (blocks_.grid != nullptr && blocks_.grid->stopped()) return false;
      const uint64_t steps = blocks_.grid != nullptr ? blocks_.grid->steps() : 0;
      Round all;
      if (!RunBlocks(all)) return false;
      if (!all.alive || WorkDone() - before >= limits_.work) break;
      for (BlockState* member : blocks_.members)
        member->progress.leave_polling_loops = !all.progress;
      if (IsDeadlocked(all) || WaitsForEver()) return false;
      if (blocks_.grid != nullptr)
        all.progress ? blocks_.grid->NoteProgress() : blocks_.grid->Sleep(steps);
      JoinWhileWaiting(all);
      if (IsOverLimit()) return false;
    }
    return true;
  }

 private:
  bool Stopped() const {
    return std::ranges::any_of(blocks_.members, [](const BlockState* x) { return x->stop; });
  }

  /// One round over all blocks; false after a hazard that ends one.
  bool RunBlocks(Round& all) {
    executed_ = 0;
    for (BlockState* member : blocks_.members) {
      const Round round = RunRound(*member, limits_.turn);
      all.alive |= round.alive;
      all.ran |= round.ran;
      all.progress |= round.progress;
      if (member->stop) {
        ReportUnwrittenReads(*member);
        return false;
      }
      executed_ = std::max(executed_, member->progress.instructions);
    }
    return true;
  }

  uint64_t WorkDone() const {
    uint64_t work = 0;
    if (limits_.weights == nullptr || limits_.work == ~uint64_t{0}) return work;
    for (const BlockState* member : blocks_.members)
      work += WorkOf(*member, *limits_.weights).amount;
    return work;
  }

  /// True after reporting that no warp could run.
  bool IsDeadlocked(const Round& all) {
    if (all.ran) return false;
    for (BlockState* member : blocks_.members) {
      if (member->progress.alive_threads == 0) continue;
      ReportDeadlock(*member);
      ReportUnwrittenReads(*member);
      return true;
    }
    return false;
  }

  /// True after reporting that all warps have waited for mbarriers for many rounds in which no
  /// phase ended.
  bool WaitsForEver() {
    uint64_t epochs = 0;
    quiet_rounds_ = AllWait(blocks_, epochs) && epochs == last_epochs_ ? quiet_rounds_ + 1 : 0;
    last_epochs_ = epochs;
    if (quiet_rounds_ <= kEndlessRounds) return false;
    for (BlockState* member : blocks_.members) {
      if (member->stop || member->progress.alive_threads == 0) continue;
      ReportEndlessWait(*member);
      if (!member->stop) continue;
      ReportUnwrittenReads(*member);
      return true;
    }
    return false;
  }

  /// Lets the next block of the grid join after some rounds without progress.
  void JoinWhileWaiting(const Round& all) {
    waiting_rounds_ = all.progress ? 0 : waiting_rounds_ + 1;
    if (waiting_rounds_ <= kWaitingRounds) return;
    waiting_rounds_ = 0;
    JoinNextBlock(blocks_);
  }

  /// True, with the outcome set, when the instruction budget or the time is used up.
  bool IsOverLimit() {
    const bool endless = executed_ > limits_.budget ||
                         (blocks_.grid != nullptr && blocks_.grid->deadlocked());
    if (!endless && (++rounds_ % 64 != 0 || SystemClock().Now() <= limits_.deadline)) return false;
    outcome_.kind = LaunchOutcome::Kind::kTimeout;
    outcome_.message = "block " + std::to_string(blocks_.blocks[0]) +
                       " did not end within its limit";
    for (BlockState* member : blocks_.members) ReportUnwrittenReads(*member);
    if (endless) ReportEndless(blocks_);
    return true;
  }

  CoScheduledBlocks& blocks_;
  const RunLimits& limits_;
  LaunchOutcome& outcome_;
  uint64_t executed_ = 0;  ///< warp instructions of the block that has executed most
  uint64_t rounds_ = 0;
  uint64_t waiting_rounds_ = 0;  ///< rounds without progress
  uint64_t quiet_rounds_ = 0;    ///< rounds in which all warps waited and no phase ended
  uint64_t last_epochs_ = 0;
};

}  // namespace

Work WorkOf(const BlockState& x, const std::vector<uint32_t>& weights) {
  Work work;
  uint64_t times = 0;  // of the basic block at hand
  for (size_t i = 0; i < weights.size(); ++i) {
    times += x.counting.basic_blocks[i].times;
    if (weights[i] == 0) continue;
    const uint64_t executed = x.counting.executed[i].times + times;
    work.amount += executed * weights[i];
    work.kind = Mix64(work.kind ^ executed);
  }
  return work;
}

void RunCoScheduled(CoScheduledBlocks& blocks, const RunLimits& limits, LaunchOutcome& outcome) {
  blocks.cluster_arrived = 0;
  blocks.cluster_phase = 0;
  blocks.arrivals.clear();
  for (size_t i = 0; i < blocks.members.size(); ++i) Start(blocks, i);
  if (!RoundLoop(blocks, limits, outcome).Run()) return;
  for (BlockState* member : blocks.members) {
    ReportUnwrittenReads(*member);
    FinishBlock(*member);
  }
}

namespace {
/// Adds the executions of operation `i`.
void CollectOp(const BlockState& x, size_t i, const Tally& executed, Counts& counts,
               LineCounts& lines) {
  const Op& op = x.kernel->ops[i];
  const auto op_class = static_cast<size_t>(op.op_class);
  counts.warp_instructions[op_class] += executed.times;
  counts.thread_instructions[op_class] += executed.lanes;
  if (executed.times == 0) return;
  const OpCost cost = x.launch->schedule ? OpCost{} : x.kernel->tracks[i].cost;
  counts.issued += executed.times * cost.issue;
  for (size_t pipe = 0; pipe < kPipes; ++pipe)
    counts.pipe_uses[pipe] += executed.times * cost.uses[pipe];
  if (!x.counting.by_line) return;
  const Hazard::Site site = SiteOf(x, op, 0, 0);
  LineCount& line = lines[{site.file, site.line}];
  line.warp_instructions[op_class] += executed.times;
  line.thread_instructions[op_class] += executed.lanes;
  line.memory += x.counting.by_op[i];
}
}  // namespace

void CollectCounts(const BlockState& x, Counts& counts, LineCounts& lines) {
  counts += x.counting.total;
  uint64_t code = 0;
  Tally block;  // executions of the basic block at hand
  for (size_t i = 0; i < x.counting.executed.size(); ++i) {
    block.times += x.counting.basic_blocks[i].times;
    block.lanes += x.counting.basic_blocks[i].lanes;
    const Tally executed{x.counting.executed[i].times + block.times,
                         x.counting.executed[i].lanes + block.lanes};
    CollectOp(x, i, executed, counts, lines);
    if (executed.times > 0 && !x.launch->schedule) code += x.kernel->tracks[i].cost.issue;
  }
  counts.code_instructions = std::max(counts.code_instructions, code);
  if (x.launch->schedule) CountIssued(x, counts);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
