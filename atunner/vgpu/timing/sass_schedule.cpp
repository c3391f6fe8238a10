#include "atunner/vgpu/timing/sass_schedule.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <unordered_map>

#include "atunner/vgpu/timing/loop_depths.h"

namespace atunner::vgpu {
namespace {

constexpr uint32_t kNowhere = ScheduledOp::kNowhere;
constexpr uint32_t kLongestDetour = 16;  // instructions that a branch around a rare case jumps over
// so many times as many instructions of a part outweigh its loops
constexpr uint32_t kOutnumbered = 8;

// Opcodes as their lowest nine bits say them.
constexpr uint16_t kFirstProduct = 0x1f0;  // wgmma's
constexpr uint16_t kBar = 0x11d, kNop = 0x118, kBranch = 0x147, kExit = 0x14d, kReturn = 0x150;
bool IsCall(uint16_t opcode) { return opcode == 0x143 || opcode == 0x144; }
bool IsIndirect(uint16_t opcode) { return opcode == 0x149 || opcode == 0x14a || opcode == 0x14c; }
/// LDL and STL, which access local memory.
bool IsLocal(uint16_t opcode) { return opcode == 0x183 || opcode == 0x187; }
bool EndsRun(uint16_t opcode) {
  return opcode == kBranch || opcode == kExit || opcode == kReturn || opcode == kBar ||
         IsIndirect(opcode);
}

struct Kind {
  Pipe pipe = Pipe::kCount;  ///< kCount: none, as of control flow and of uniform registers
  Wait wait = Wait::kRegisterRead;
};

/// The pipe and latency of a machine opcode. Opcodes of one unit are neighbours, with exceptions.
Kind KindOf(uint16_t opcode) {
  switch (opcode) {
    case 0x005:  // cs2r
    case kNop:
    case 0x11a:  // depbar
    case 0x1af:  // ldgdepbar
    case 0x1c2:  // r2ur
    case 0x1c3:  // s2ur
      return {};
    case 0x020:  // fmul, fadd, ffma
    case 0x021:
    case 0x023:
    case 0x030:  // hadd2, hfma2, hmul2
    case 0x031:
    case 0x032:
    case 0x035:
      return {Pipe::kFma};
    case 0x024:  // imad and its wide and high forms
    case 0x025:
    case 0x026:
    case 0x027:
      return {Pipe::kImad};
    case 0x028:  // dmul, dadd, dsetp, dfma
    case 0x029:
    case 0x02a:
    case 0x02b:
      return {Pipe::kFp64, Wait::kFp64};
    case 0x037:  // imma, hmma, bmma, dmma
    case 0x03c:
    case 0x03d:
    case 0x03f:
      return {Pipe::kTensor, Wait::kTensor};
    case 0x03b:  // ldsm
      return {Pipe::kLsu, Wait::kMemory};
    case 0x119:  // s2r
      return {Pipe::kLsu, Wait::kRegisterRead};
    case 0x182:  // ldc
      return {Pipe::kLsu, Wait::kConstant};
    case 0x189:  // shfl
    case 0x1a1:  // match
    case 0x1a7:  // syncs
    case 0x1c4:  // redux
      return {Pipe::kLsu, Wait::kShuffle};
    case 0x192:  // membar
      return {Pipe::kLsu, Wait::kFence};
    default:
      break;
  }
  if (opcode < 0x080) return {Pipe::kAlu};
  if (opcode < 0x100) return {};  // uniform
  if (opcode < 0x118) return {Pipe::kSfu, Wait::kSpecial};
  if (opcode < 0x180) return {};  // control flow
  if (opcode >= kFirstProduct) return {Pipe::kTensor, Wait::kTensor};
  return {Pipe::kLsu, Wait::kMemory};
}

/// True if the code from `first` on returns. Subroutines follow the kernel's last exit.
bool IsSubroutine(const MachineCode& code, size_t first) {
  for (size_t i = first; i < code.size(); ++i) {
    if (code[i].opcode == kReturn) return true;
    if (code[i].opcode == kExit && !code[i].conditional) return false;
  }
  return false;
}

/// The assembler leaves large loops by calls that never return. They are branches.
MachineCode WithBranches(MachineCode code) {
  for (MachineInstruction& instruction : code) {
    if (IsCall(instruction.opcode) && instruction.target < code.size() &&
        !IsSubroutine(code, instruction.target))
      instruction.opcode = kBranch;
  }
  return code;
}

class Matching {
 public:
  Matching(const MachineCode& code, const std::vector<ScheduledOp>& ops)
      : code_(WithBranches(code)),
        ops_(ops),
        dropped_(code.size(), false),
        jumps_(code.size(), kNowhere) {}

  SassSchedule Run() {
    FindParts();
    for (size_t i = 0; i < ops_.size(); ++i)
      op_of_line_.emplace(ops_[i].line, static_cast<uint32_t>(i));
    DropRareCases();
    MakeRuns();
    FindConverted();
    FindOwners();
    for (size_t part = 0; part < schedule_.parts.size(); ++part) Arrange(part);
    schedule_.converted.assign(ops_.size(), 0);
    for (const uint32_t branch : converted_) schedule_.converted[branch] = 1;
    return std::move(schedule_);
  }

 private:
  using Lines = std::map<uint32_t, uint32_t>;  ///< operation → instructions

  void FindParts() {
    std::vector<bool> first(ops_.size() + 1, false);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].first) first[i] = true;
      if (ops_[i].last) first[i + 1] = true;
      if (ops_[i].target < ops_.size()) first[ops_[i].target] = true;
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (i == 0 || first[i]) schedule_.parts.emplace_back();
      schedule_.part_of.push_back(static_cast<uint32_t>(schedule_.parts.size() - 1));
    }
    FindLoops();
  }

  void FindLoops() {
    std::vector<std::vector<uint32_t>> next(schedule_.parts.size());
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      const uint32_t part = schedule_.part_of[i];
      if (ops_[i].target < ops_.size()) next[part].push_back(schedule_.part_of[ops_[i].target]);
      const bool leaves = ops_[i].always && (ops_[i].target < ops_.size() || ops_[i].ends);
      if (i + 1 < ops_.size() && schedule_.part_of[i + 1] != part && !leaves)
        next[part].push_back(part + 1);
    }
    depth_of_part_ = LoopDepths(next);
  }

  uint32_t OpOf(size_t instruction) const {
    const auto at = op_of_line_.find(code_[instruction].line);
    return at == op_of_line_.end() ? kNowhere : at->second;
  }

  bool OwnCall(size_t i) const {
    const uint32_t op = OpOf(i);
    return IsCall(code_[i].opcode) && !(op != kNowhere && ops_[op].calls);
  }

  /// Slow paths of divisions and roots: subroutines behind the kernel, and the calls that branches
  /// jump over.
  void DropRareCases() {
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!OwnCall(i) || code_[i].target == MachineInstruction::kNowhere) continue;
      for (size_t k = code_[i].target; k < code_.size(); ++k) {
        dropped_[k] = true;
        if (code_[k].opcode == kReturn && !code_[k].conditional) break;
      }
    }
    for (size_t i = 0; i < code_.size(); ++i) {
      const MachineInstruction& branch = code_[i];
      const uint32_t op = OpOf(i);
      if (dropped_[i] || branch.opcode != kBranch || op == kNowhere || ops_[op].control) continue;
      if (branch.target <= i || branch.target > i + kLongestDetour || branch.target >= code_.size())
        continue;
      bool calls = false;
      for (size_t k = i + 1; k < branch.target; ++k) calls = calls || OwnCall(k);
      if (!calls) continue;
      jumps_[i] = branch.target;
      for (size_t k = i + 1; k < branch.target; ++k) dropped_[k] = true;
    }
  }

  std::vector<bool> Leaders() const {
    std::vector<bool> leaders(code_.size() + 1, false);
    for (size_t i = 0; i < code_.size(); ++i) {
      if (dropped_[i] || !EndsRun(code_[i].opcode) || jumps_[i] != kNowhere) continue;
      leaders[i + 1] = true;
      if (code_[i].target < code_.size()) leaders[code_[i].target] = true;
    }
    return leaders;
  }

  /// Loops around each instruction.
  std::vector<uint32_t> Depths(const std::vector<bool>& leaders) const {
    std::vector<uint32_t> block_of(code_.size());
    uint32_t blocks = 0;
    for (size_t i = 0; i < code_.size(); ++i) block_of[i] = i > 0 && leaders[i] ? ++blocks : blocks;
    std::vector<std::vector<uint32_t>> next(code_.empty() ? 0 : blocks + 1);
    for (size_t i = 0; i < code_.size(); ++i) {
      const MachineInstruction& instruction = code_[i];
      const uint16_t opcode = instruction.opcode;
      if (opcode == kBranch && instruction.target < code_.size() && jumps_[i] == kNowhere)
        next[block_of[i]].push_back(block_of[instruction.target]);
      const bool leaves = opcode == kBranch || opcode == kExit || opcode == kReturn ||
                          IsIndirect(opcode);
      const bool stays = instruction.conditional || !leaves || jumps_[i] != kNowhere;
      if (i + 1 < code_.size() && block_of[i + 1] != block_of[i] && stays)
        next[block_of[i]].push_back(block_of[i + 1]);
    }
    const std::vector<uint32_t> of_block = LoopDepths(next);
    std::vector<uint32_t> depths;
    for (const uint32_t block : block_of) depths.push_back(of_block[block]);
    return depths;
  }

  void MakeRuns() {
    const std::vector<bool> leaders = Leaders();
    const std::vector<uint32_t> depths = Depths(leaders);
    MachineRun run;
    const auto close = [&] {
      const auto idle = [](const MachineStep& step) { return step.instruction.opcode == kNop; };
      if (!std::ranges::all_of(run.steps, idle)) schedule_.runs.push_back(std::move(run));
      run = {};
    };
    for (size_t i = 0; i < code_.size(); ++i) {
      if (leaders[i]) close();
      if (dropped_[i] || (code_[i].opcode == kBranch && code_[i].target == i)) continue;
      if (run.steps.empty()) run.depth = depths[i];
      const Kind kind = KindOf(code_[i].opcode);
      const uint32_t op = OpOf(i);
      const bool spill = IsLocal(code_[i].opcode) && (op == kNowhere || !ops_[op].local);
      run.steps.push_back({code_[i], op, kind.wait, 1, jumps_[i] != kNowhere, spill});
      if (spill) run.spilled_words += code_[i].words;
      if (kind.pipe != Pipe::kCount) ++run.uses[static_cast<size_t>(kind.pipe)];
    }
    close();
  }

  Lines LinesOf(const MachineRun& run, uint32_t part) const {
    Lines lines;
    for (const MachineStep& step : run.steps) {
      if (step.op != kNowhere && schedule_.part_of[step.op] == part) ++lines[step.op];
    }
    return lines;
  }

  /// Branches that became predicates: none of the machine's comes from their line.
  void FindConverted() {
    std::set<uint32_t> kept;
    for (size_t i = 0; i < code_.size(); ++i) {
      if (code_[i].opcode == kBranch || code_[i].opcode == kExit || IsIndirect(code_[i].opcode))
        kept.insert(OpOf(i));
    }
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      const bool ahead = ops_[i].target < ops_.size() && ops_[i].target > i;
      if (ahead && !ops_[i].always && !kept.contains(i)) converted_.push_back(i);
    }
  }

  /// True if a branch within the run jumps over this part.
  bool IsSkipped(uint32_t part, const std::map<uint32_t, uint32_t>& counts) const {
    return std::ranges::any_of(converted_, [&](uint32_t branch) {
      const uint32_t from = schedule_.part_of[branch], to = schedule_.part_of[ops_[branch].target];
      return from < part && part < to && counts.begin()->first <= from;
    });
  }

  /// Parts that the run may stand for, the best first: the one that ends with the same barrier,
  /// then those that are not skipped within it, that are not by far outnumbered, of as many loops
  /// as it has, of which the most instructions come.
  std::vector<uint32_t> Ranked(const MachineRun& run) const {
    std::map<uint32_t, uint32_t> counts;
    for (const MachineStep& step : run.steps) {
      if (step.op != kNowhere) ++counts[schedule_.part_of[step.op]];
    }
    std::vector<uint32_t> parts;
    for (const auto& [part, count] : counts) parts.push_back(part);
    std::ranges::stable_sort(parts, [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
    const auto apart = [&](uint32_t part) {
      const uint32_t depth = depth_of_part_[part];
      return std::max(depth, run.depth) - std::min(depth, run.depth);
    };
    std::ranges::stable_sort(parts, {}, apart);
    if (parts.empty()) return parts;
    // Code behind the kernel that jumps back into it looks like loops: a few instructions of the
    // wait that follows a part must not win by their depth.
    const uint32_t most = std::ranges::max(std::views::values(counts));
    std::ranges::stable_partition(
        parts, [&](uint32_t part) { return kOutnumbered * counts[part] >= most; });
    std::ranges::stable_partition(parts, [&](uint32_t part) { return !IsSkipped(part, counts); });
    const MachineStep& end = run.steps.back();
    const bool meets = end.instruction.opcode == kBar && end.op != kNowhere && ops_[end.op].last;
    if (meets)
      std::ranges::stable_partition(
          parts, [&](uint32_t part) { return part == schedule_.part_of[end.op]; });
    return parts;
  }

  static bool Overlap(const Lines& a, const Lines& b) {
    const auto shared = std::ranges::count_if(
        a, [&](const auto& line) { return b.contains(line.first); });
    return 2 * static_cast<size_t>(shared) >= std::max<size_t>(1, std::min(a.size(), b.size()));
  }

  /// A run belongs to the part that most of it comes from, unless that is a loop and the run was
  /// moved out of it.
  void FindOwners() {
    std::vector<std::vector<uint32_t>> ranked;
    owned_.resize(schedule_.parts.size());
    for (uint32_t i = 0; i < schedule_.runs.size(); ++i) {
      ranked.push_back(Ranked(schedule_.runs[i]));
      if (!ranked[i].empty()) owned_[ranked[i].front()].push_back(i);
    }
    std::vector<std::pair<uint32_t, uint32_t>> moved;  // run, from
    for (uint32_t part = 0; part < owned_.size(); ++part) {
      std::erase_if(owned_[part], [&](uint32_t run) {
        const bool out = MovedOut(run, part);
        if (out) moved.emplace_back(run, part);
        return out;
      });
    }
    for (const auto& [of, from] : moved) {
      const uint32_t run = of, part = from;
      const auto fits = [&](uint32_t other) {
        return other != part && DepthOfPart(other) <= schedule_.runs[run].depth;
      };
      const std::vector<uint32_t>& wanted = ranked[run];
      const auto to = std::ranges::find_if(wanted, fits);
      if (to != wanted.end()) {
        owned_[*to].push_back(run);
      } else if (run > 0 && !ranked[run - 1].empty() && fits(ranked[run - 1].front())) {
        owned_[ranked[run - 1].front()].push_back(run);
      }
    }
    for (auto& runs : owned_) std::ranges::sort(runs);
  }

  uint32_t DepthOfPart(uint32_t part) const {
    uint32_t depth = 0;
    for (const uint32_t run : owned_[part]) depth = std::max(depth, schedule_.runs[run].depth);
    return depth;
  }

  bool MovedOut(uint32_t run, uint32_t part) const {
    const uint32_t deepest = DepthOfPart(part);
    if (schedule_.runs[run].depth >= deepest) return false;
    const Lines lines = LinesOf(schedule_.runs[run], part);
    return std::ranges::none_of(owned_[part], [&](uint32_t other) {
      return schedule_.runs[other].depth == deepest &&
             Overlap(lines, LinesOf(schedule_.runs[other], part));
    });
  }

  /// Number of executions of its parts that the run stands for.
  uint32_t CopiesOf(const MachineRun& run) const {
    Lines lines;
    for (const MachineStep& step : run.steps) {
      // Computations of an instruction's address or operands have the same line, but other pipes.
      const Pipe pipe = KindOf(step.instruction.opcode).pipe;
      const bool counts = pipe == Pipe::kLsu || pipe == Pipe::kFma || pipe == Pipe::kTensor;
      if (step.op != kNowhere && ops_[step.op].single && counts && !step.spill) ++lines[step.op];
    }
    std::vector<uint32_t> counts;
    for (const auto& [op, count] : lines) counts.push_back(count);
    if (counts.empty()) return 1;
    std::ranges::nth_element(counts,
                             counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2));
    return counts[counts.size() / 2];
  }

  /// The line table gives wgmma lines of its neighbours. Each is one machine instruction, and they
  /// keep their order.
  void MatchProducts(MachineRun& run, uint32_t part) {
    std::vector<uint32_t> products;
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].product && schedule_.part_of[i] == part) products.push_back(i);
    }
    size_t next = 0;
    for (MachineStep& step : run.steps) {
      if (step.instruction.opcode >= kFirstProduct && !products.empty())
        step.op = products[next++ % products.size()];
    }
  }

  /// A tile of `wmma` takes several instructions.
  void ShareAccesses(MachineRun& run) const {
    Lines accesses;
    const auto shared = [&](const MachineStep& step) {
      return step.wait == Wait::kMemory && step.op != kNowhere && !ops_[step.op].single &&
             !step.spill;
    };
    for (const MachineStep& step : run.steps) {
      if (shared(step)) ++accesses[step.op];
    }
    for (MachineStep& step : run.steps) {
      if (shared(step)) step.shares = std::max(1u, accesses[step.op] / run.copies);
    }
  }

  void Arrange(size_t index) {
    SassSchedule::Part& part = schedule_.parts[index];
    std::vector<Lines> firsts;
    // Alternatives are found by all instructions of a part, because the first few are not enough.
    std::ranges::stable_sort(owned_[index], std::greater{},
                             [&](uint32_t run) { return schedule_.runs[run].steps.size(); });
    for (const uint32_t run : owned_[index]) {
      const Lines lines = LinesOf(schedule_.runs[run], static_cast<uint32_t>(index));
      schedule_.runs[run].copies = CopiesOf(schedule_.runs[run]);
      MatchProducts(schedule_.runs[run], static_cast<uint32_t>(index));
      ShareAccesses(schedule_.runs[run]);
      part.copies = std::max(part.copies, schedule_.runs[run].copies);
      const auto same = std::ranges::find_if(
          firsts, [&](const Lines& other) { return Overlap(lines, other); });
      if (same == firsts.end() || lines.empty()) {
        firsts.push_back(lines);
        part.runs.push_back({run});
      } else {
        part.runs[static_cast<size_t>(same - firsts.begin())].push_back(run);
      }
    }
    std::ranges::sort(part.runs, {},
                      [](const auto& alternatives) { return std::ranges::min(alternatives); });
    for (auto& alternatives : part.runs) {
      std::ranges::stable_sort(alternatives, [&](uint32_t a, uint32_t b) {
        const MachineRun &x = schedule_.runs[a], &y = schedule_.runs[b];
        return x.copies != y.copies ? x.copies > y.copies : x.depth > y.depth;
      });
      // The slow path of a wait, a loop of its own, does not belong to the work of its part.
      const auto covered = [&](uint32_t run) {
        return LinesOf(schedule_.runs[run], static_cast<uint32_t>(index)).size();
      };
      const size_t most = std::ranges::max(alternatives | std::views::transform(covered));
      std::ranges::stable_partition(alternatives,
                                    [&](uint32_t run) { return 2 * covered(run) >= most; });
    }
  }

  const MachineCode code_;
  const std::vector<ScheduledOp>& ops_;
  std::unordered_map<uint32_t, uint32_t> op_of_line_;
  std::vector<uint32_t> depth_of_part_;  ///< loops of the PTX around it
  std::vector<bool> dropped_;
  std::vector<uint32_t> jumps_;      ///< branches inside a run
  std::vector<uint32_t> converted_;  ///< operations that became predicates
  std::vector<std::vector<uint32_t>> owned_;
  SassSchedule schedule_;
};

}  // namespace

SassSchedule MakeSchedule(const MachineCode& code, const std::vector<ScheduledOp>& ops) {
  const auto known = std::ranges::count_if(code,
                                           [](const MachineInstruction& i) { return i.line > 0; });
  if (code.empty() || ops.empty() || 2 * static_cast<size_t>(known) < code.size()) return {};
  return Matching(code, ops).Run();
}

}  // namespace atunner::vgpu
