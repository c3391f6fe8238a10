#include "atunner/vgpu/timeline/in_order.h"

#include <algorithm>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr double kOperandRead = 12;  // cycles until the load/store unit has read a warp's registers
// wgmma groups that a quarter's tensor core queues before a warp must wait to issue
constexpr double kQueuedProducts = 6;
// Accesses that are kept per operation. A loop that was unrolled more often is not matched.
constexpr size_t kMostTouches = 1024;
constexpr uint16_t kBranch = 0x147;
constexpr uint16_t kFirstProduct = 0x1f0;
constexpr uint16_t kGroupEnd = 0x1af;  // ldgdepbar: cp.async.commit_group

bool EndsPart(Flow flow) {
  switch (flow) {
    case Flow::kBranch:
    case Flow::kBranchIndexed:
    case Flow::kExit:
    case Flow::kBarrier:
    case Flow::kClusterBarrier:
    case Flow::kTrap:
    case Flow::kCall:
    case Flow::kReturn:
      return true;
    default:
      return false;
  }
}

bool IsControl(Flow flow) {
  return EndsPart(flow) && flow != Flow::kBarrier && flow != Flow::kClusterBarrier &&
         flow != Flow::kCall;
}

/// The next access of an instruction's operation. One instruction may make the accesses of several
/// operations, or a part of one.
Touch TakeTouch(WarpTime::Accesses& accesses, uint32_t shares) {
  if (accesses.touches.empty()) return {};
  Touch touch = accesses.touches[std::min(accesses.taken / shares, accesses.touches.size() - 1)];
  ++accesses.taken;
  touch.wavefronts = (touch.wavefronts + shares - 1) / shares;
  return touch;
}

/// Issues one run of machine instructions for one warp.
class Issue {
 public:
  explicit Issue(BlockState& x)
      : x_(x),
        latencies_(x.launch->latencies),
        time_(x.timing.warps[x.warp->index]),
        at_(time_.start) {}

  void Run(const MachineRun& run, bool jumps) {
    const Moment start = at_;
    uint32_t memory = 0;
    for (size_t i = 0; i < run.steps.size(); ++i) {
      const bool leaves = run.steps[i].taken || (jumps && i + 1 == run.steps.size() &&
                                                 run.steps[i].instruction.opcode == kBranch);
      Step(run.steps[i], leaves, memory);
    }
    x_.counting.total.shared.issued_wavefronts += memory;
    const auto uses = [&](Pipe pipe) {
      return static_cast<double>(run.uses[static_cast<size_t>(pipe)]);
    };
    const double busy = std::max(
        {uses(Pipe::kAlu) * latencies_.alu_busy, uses(Pipe::kSfu) * latencies_.special_busy,
         uses(Pipe::kTensor) * latencies_.tensor_busy, static_cast<double>(memory)});
    at_ = Latest(at_, {start[0] + busy, start[1] + busy});
  }
  Moment at() const { return at_; }

 private:
  void Step(const MachineStep& step, bool leaves, uint32_t& memory) {
    const MachineInstruction& instruction = step.instruction;
    for (size_t i = 0; i < time_.barriers.size(); ++i) {
      if ((instruction.waits >> i & 1) != 0) at_ = Latest(at_, time_.barriers[i]);
    }
    uint32_t wavefronts = step.wait == Wait::kMemory    ? latencies_.memory_turns
                          : step.wait == Wait::kShuffle ? 1
                                                        : 0;
    double latency = latencies_.wait[static_cast<size_t>(step.wait)];
    Moment done = {at_[0] + latency, at_[1] + latency};
    if (step.spill) {
      done = {at_[0] + latencies_.spill, at_[1] + latencies_.spill};
      wavefronts *= instruction.words;
    } else if (step.op != ScheduledOp::kNowhere) {
      const Track& track = x_.kernel->tracks[step.op];
      if (step.wait == Wait::kMemory) {
        const Touch touch = TakeTouch(time_.accesses[step.op], step.shares);
        done = DoneWith(x_, touch, at_);
        wavefronts = std::max(wavefronts, touch.wavefronts);
      }
      Asynchronous(track, instruction, step.op, done);
    }
    memory += wavefronts;
    if (instruction.result_barrier < time_.barriers.size()) Hold(instruction.result_barrier, done);
    if (instruction.read_barrier < time_.barriers.size())
      Hold(instruction.read_barrier, {at_[0] + kOperandRead, at_[1] + kOperandRead});
    const double gap = std::max<double>(1, instruction.stall) + (leaves ? latencies_.branch : 0);
    at_ = {at_[0] + gap, at_[1] + gap};
  }

  void Hold(size_t barrier, const Moment& until) {
    time_.barriers[barrier] = Latest(time_.barriers[barrier], until);
  }

  /// A warp's wgmma occupy its quarter's tensor core one after the other, after those of other warp
  /// groups. If too many are queued the warp waits to issue, and releases its last buffer as much
  /// later.
  void Multiply(uint32_t products) {
    const double busy = latencies_.products_per_clk > 0
                            ? static_cast<double>(products) / latencies_.products_per_clk
                            : 0;
    if (time_.waited) time_.earlier_products = time_.products;
    time_.waited = false;
    Port& tensor = x_.timing.ports.tensor[x_.warp->index % kQuarters];
    const Moment backlog = tensor.Backlog(at_);
    for (size_t run = 0; run < at_.size(); ++run)
      at_[run] += std::max(0.0, backlog[run] - kQueuedProducts * busy);
    time_.products = tensor.Take(Latest(at_, time_.products), busy);
  }

  void Await(const Moment& products) {
    at_ = Latest(at_, {products[0] + latencies_.products, products[1] + latencies_.products});
  }

  /// cp.async, wgmma, and the instructions that wait for them.
  void Asynchronous(const Track& track, const MachineInstruction& instruction, uint32_t op,
                    const Moment& done) {
    switch (track.role) {
      case Track::Role::kAsyncCopy:
        time_.copies = Latest(time_.copies, done);
        break;
      case Track::Role::kAsyncCommit:
        if (instruction.opcode != kGroupEnd) break;
        time_.groups.push_back(time_.copies);
        time_.copies = {};
        break;
      case Track::Role::kAsyncWait:
        at_ = Latest({at_[0] + latencies_.arrival, at_[1] + latencies_.arrival},
                     LandedBy(time_, x_.kernel->ops[op].imm));
        break;
      case Track::Role::kProduct:
        if (instruction.opcode >= kFirstProduct) Multiply(track.products);
        break;
      case Track::Role::kProductWait:
        Await(x_.kernel->ops[op].imm == 0 ? time_.products : time_.earlier_products);
        time_.waited = true;
        break;
      case Track::Role::kPlain:
        break;
    }
  }

  BlockState& x_;
  const Latencies& latencies_;
  WarpTime& time_;
  Moment at_;
};

/// The alternative that covers most executions.
uint32_t Choose(const SassSchedule& schedule, const std::vector<uint32_t>& alternatives,
                uint32_t pending) {
  for (const uint32_t run : alternatives) {
    if (schedule.runs[run].copies <= pending) return run;
  }
  return alternatives.back();
}

void Forget(const MachineRun& run, WarpTime& time) {
  for (const MachineStep& step : run.steps) {
    if (step.op == ScheduledOp::kNowhere || step.wait != Wait::kMemory) continue;
    time.accesses[step.op].touches.clear();
    time.accesses[step.op].taken = 0;
  }
}

}  // namespace

Moment LandedBy(WarpTime& time, uint64_t newest) {
  if (newest > time.groups.size()) {
    if (newest != ~uint64_t{0}) return {};
    time.groups.push_back(time.copies), newest = 0;
  }
  Moment landed{};
  const size_t count = time.groups.size() - static_cast<size_t>(newest);
  for (size_t i = 0; i < count; ++i) landed = Latest(landed, time.groups[i]);
  time.groups.erase(time.groups.begin(), time.groups.begin() + static_cast<std::ptrdiff_t>(count));
  return landed;
}

SassSchedule ScheduleOf(const Kernel& kernel, const MachineCode& code) {
  std::vector<ScheduledOp> ops(kernel.ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const Op& op = kernel.ops[i];
    const Track& track = kernel.tracks[i];
    ScheduledOp& scheduled = ops[i];
    scheduled.line = kernel.locations[i].line;
    if (op.flow == Flow::kBranch) scheduled.target = op.target;
    scheduled.first = track.meets;
    scheduled.last = EndsPart(op.flow) || track.meets;
    scheduled.control = IsControl(op.flow);
    scheduled.always = op.guard < 0;
    scheduled.ends = op.flow == Flow::kExit || op.flow == Flow::kReturn || op.flow == Flow::kTrap;
    scheduled.calls = op.flow == Flow::kCall;
    scheduled.product = track.role == Track::Role::kProduct;
    scheduled.local = op.op_class == OpClass::kLocal;
    const auto uses = [&](Pipe pipe) { return track.cost.uses[static_cast<size_t>(pipe)]; };
    scheduled.single = track.cost.issue == 1 &&
                       (uses(Pipe::kLsu) + uses(Pipe::kFma) + uses(Pipe::kTensor) == 1);
  }
  for (const Op& op : kernel.ops) {
    for (uint64_t i = 0; op.flow == Flow::kBranchIndexed && i < op.imm; ++i)
      ops[static_cast<size_t>(kernel.lists[op.list + i])].first = true;
  }
  for (const Code& code_part : kernel.code) {
    if (code_part.first_op < ops.size()) ops[code_part.first_op].first = true;
  }
  return MakeSchedule(code, ops);
}

void IssuePending(BlockState& x) {
  WarpTime& time = x.timing.warps[x.warp->index];
  if (time.pending == 0) return;
  const SassSchedule& schedule = *x.launch->schedule;
  const SassSchedule::Part& part = schedule.parts[time.part];
  Issue issue(x);
  for (const std::vector<uint32_t>& alternatives : part.runs) {
    for (uint32_t left = time.pending; left > 0;) {
      const uint32_t run = Choose(schedule, alternatives, left);
      issue.Run(schedule.runs[run], time.jumps > 0);
      ++x.timing.issued_runs[run];
      left -= std::min(left, schedule.runs[run].copies);
    }
    for (const uint32_t run : alternatives) Forget(schedule.runs[run], time);
  }
  time.start = time.issued = issue.at();
  time.pending = time.jumps = 0;
}

std::vector<uint8_t> PartBeginnings(const SassSchedule& schedule) {
  std::vector<uint8_t> begins(schedule.part_of.size());
  for (size_t pc = 0; pc < begins.size(); ++pc) {
    const uint32_t part = schedule.part_of[pc];
    begins[pc] = (pc == 0 || schedule.part_of[pc - 1] != part) &&
                 !schedule.parts[part].runs.empty();
  }
  return begins;
}

void NoteOperation(BlockState& x, const Op& op, uint32_t pc, bool active) {
  const SassSchedule& schedule = *x.launch->schedule;
  WarpTime& time = x.timing.warps[x.warp->index];
  if (x.launch->timing.marks[pc] != 0) {
    const uint32_t part = schedule.part_of[pc];
    if (time.part != part || time.pending >= schedule.parts[part].copies) IssuePending(x);
    time.part = part;
    ++time.pending;
  }
  if (x.timing.touch.level != Touch::Level::kNone &&
      time.accesses[pc].touches.size() < kMostTouches)
    time.accesses[pc].touches.push_back(x.timing.touch);
  x.timing.touch = {};
  const bool jumps = op.flow == Flow::kBranch || op.flow == Flow::kBranchIndexed;
  if (jumps && active) ++time.jumps;
  if (EndsPart(op.flow) && !jumps) IssuePending(x);
}

void CountIssued(const BlockState& x, Counts& counts) {
  uint64_t code = 0;
  for (size_t i = 0; i < x.timing.issued_runs.size(); ++i) {
    const MachineRun& run = x.launch->schedule->runs[i];
    const uint64_t times = x.timing.issued_runs[i];
    if (times == 0) continue;
    code += run.steps.size();
    counts.spilled_words += times * run.spilled_words;
    counts.issued += times * run.steps.size();
    for (size_t pipe = 0; pipe < kPipes; ++pipe) counts.pipe_uses[pipe] += times * run.uses[pipe];
  }
  counts.code_instructions = std::max(counts.code_instructions, code);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
