#include "atunner/vgpu/analysis/work_slice.h"

#include <algorithm>
#include <map>
#include <set>

#include "atunner/vgpu/analysis/block_variance.h"

namespace atunner::vgpu {
namespace {

using ptx::Instruction;
using ptx::Operand;

// Larger graphs are not analysed, because the analysis takes the square of their size.
constexpr size_t kMostBlocks = 1500;

bool IsOneOf(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

bool IsReturn(const Instruction& i) { return IsOneOf(i.opcode, {"ret", "exit"}); }

bool IsBranch(const Instruction& i) { return IsOneOf(i.opcode, {"bra", "brx"}); }

bool EndsBlock(const Instruction& i) { return IsBranch(i) || IsReturn(i) || i.opcode == "trap"; }

/// What stops the analysis; "" = nothing.
std::string Obstacle(const ptx::Function& function) {
  for (const Instruction& i : function.body) {
    if (i.opcode == "call") return "it calls functions";
    if (IsOneOf(i.opcode, {"alloca", "stackrestore"})) return "it allocates on the stack";
    const bool guarded = i.guard >= 0 && i.opcode == "trap";
    if (guarded) return "it traps under a predicate";
  }
  return "";
}

/// Chooses the instructions of a slice.
class Chooser {
 public:
  Chooser(const ptx::Function& function, const ControlFlow& flow, const BlockVariance& variance,
          KeptBranches branches)
      : function_(function), flow_(flow), variance_(variance), kept_(function.body.size(), false) {
    for (size_t b = 0; b < flow.blocks().size(); ++b) {
      if (flow.Decides(b) && Matters(b, branches)) Keep(Last(b));
    }
    any_branch_ = !open_.empty() || !unknown_.empty();
    while (!open_.empty() || AddWriters()) {
      const size_t at = open_.back();
      open_.pop_back();
      Follow(at);
    }
  }

  bool any_branch() const { return any_branch_; }
  bool Keeps(size_t instruction) const { return kept_[instruction]; }
  const std::string& unknown() const { return unknown_; }

 private:
  size_t Last(size_t block) const { return flow_.blocks()[block].end - 1; }

  bool Matters(size_t block, KeptBranches branches) {
    const uint8_t reason = variance_.OfBranch(block);
    if (branches == KeptBranches::kAll) return !WaitsFor(block);
    if (branches == KeptBranches::kByData)
      return (reason & kByMemory) != 0 && !IsSlight(block, kByMemory);
    if ((reason & kByTime) != 0) unknown_ = "a branch depends on a clock or on the SM";
    return reason != 0 && !IsSlight(block, reason);
  }

  /// True if the branch is that of a loop that waits for a barrier in memory.
  bool WaitsFor(size_t block) const {
    const int guard = function_.body[Last(block)].guard;
    if (guard < 0) return false;
    return std::ranges::any_of(variance_.DefinitionsOf(guard),
                               [&](size_t at) { return IsWait(function_.body[at]); });
  }

  /// True if the branch decides about a few instructions without a loop: however it decides, a
  /// block's work hardly differs. Compilers make such branches themselves, as for divisions of 64
  /// bits whose operands have 32. Blocks that choose by their index must not access memory there.
  bool IsSlight(size_t block, uint8_t reason) const {
    constexpr size_t kFew = 8;
    const auto& own = flow_.blocks()[block];
    std::vector<bool> between(flow_.blocks().size(), false);
    size_t instructions = 0;
    for (const std::vector<bool>& side : variance_.SidesOf(block)) {
      for (size_t b = 0; b < side.size(); ++b) {
        if (!side[b] || between[b]) continue;
        between[b] = true;
        if (reason != kByMemory && AccessesMemory(b)) return false;
        instructions += flow_.blocks()[b].end - flow_.blocks()[b].first;
      }
    }
    return instructions <= std::max(kFew, (own.end - own.first) / 2) &&
           !flow_.HasLoop(block, between);
  }

  bool AccessesMemory(size_t block) const {
    const BasicBlock& b = flow_.blocks()[block];
    return std::any_of(variance_.memory().begin() + static_cast<long>(b.first),
                       variance_.memory().begin() + static_cast<long>(b.end),
                       [](const MemoryUse& use) { return (use.reads | use.writes) != 0; });
  }

  void Keep(size_t instruction) {
    if (kept_[instruction]) return;
    kept_[instruction] = true;
    open_.push_back(instruction);
  }

  /// Keeps what an instruction depends on.
  void Follow(size_t at) {
    const Instruction& i = function_.body[at];
    const Use& use = variance_.uses()[at];
    for (const auto* registers : {&use.addresses, &use.values}) {
      for (int reg : *registers) KeepDefinitions(reg);
    }
    if (i.guard >= 0) KeepDefinitions(i.guard);
    for (size_t decider : flow_.Deciders(flow_.BlockOf(at))) Keep(Last(decider));
    if (IsOneOf(i.opcode, {"addc", "subc", "madc"})) KeepCarries();
    if (IsWait(i)) unknown_ = "a branch depends on a barrier in memory";
    const MemoryUse& memory = variance_.memory()[at];
    if (memory.reads == 0) return;
    if (memory.asynchronous) unknown_ = "a branch depends on what tensor cores read";
    loads_.push_back(at);
    writers_complete_ = false;
  }

  void KeepDefinitions(int reg) {
    for (size_t definition : variance_.DefinitionsOf(reg)) Keep(definition);
  }

  void KeepCarries() {
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (function_.body[i].Has("cc")) Keep(i);
    }
  }

  /// Keeps what writes the memory that the slice reads, and the barriers between. False if nothing
  /// is new.
  bool AddWriters() {
    if (writers_complete_) return false;
    writers_complete_ = true;
    uint8_t reads = 0;
    for (size_t load : loads_) reads |= variance_.memory()[load].reads;
    for (size_t i = 0; i < kept_.size(); ++i) {
      const MemoryUse& memory = variance_.memory()[i];
      const bool barrier = IsOneOf(function_.body[i].opcode, {"bar", "barrier"});
      if (barrier && (reads & (kSharedSpace | kGlobalSpace)) != 0) Keep(i);
      if (memory.writes == 0 ||
          !std::ranges::any_of(loads_, [&](size_t load) { return variance_.MayAlias(i, load); }))
        continue;
      if (memory.asynchronous) unknown_ = "a branch depends on what asynchronous copies bring";
      Keep(i);
    }
    return !open_.empty();
  }

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const BlockVariance& variance_;
  std::vector<bool> kept_;
  std::vector<size_t> open_;
  std::vector<size_t> loads_;
  bool writers_complete_ = true;
  bool any_branch_ = false;
  std::string unknown_;
};

/// Writes the chosen instructions as a function.
class Writer {
 public:
  Writer(const ptx::Function& function, const ControlFlow& flow, const Chooser& chosen,
         WorkSlice& slice)
      : function_(function), flow_(flow), chosen_(chosen), slice_(slice) {
    slice_.function = function;
    slice_.function.body.clear();
    slice_.function.labels.clear();
    slice_.function.branch_targets.clear();
    slice_.function.used_bytes.clear();
    marker_ = static_cast<int>(function.registers.size());
    slice_.function.registers.push_back({"%atunner_marker", ptx::Type::kB32});
    const std::vector<bool> reached = Reached();
    left_out_ = LeftOut(reached);
    for (size_t b = 0; b < reached.size(); ++b) {
      if (!reached[b]) continue;
      following_ = b + 1;
      while (following_ < reached.size() && !reached[following_]) ++following_;
      WriteBlock(b);
    }
  }

 private:
  const Instruction& LastOf(size_t block) const {
    return function_.body[flow_.blocks()[block].end - 1];
  }
  /// True if the block's branch is replaced by a jump to its join.
  bool Skips(size_t block) const {
    return flow_.Decides(block) && !chosen_.Keeps(flow_.blocks()[block].end - 1);
  }

  std::vector<bool> Reached() const {
    std::vector<bool> reached(flow_.blocks().size(), false);
    std::vector<size_t> open = {0};
    while (!open.empty()) {
      const size_t b = open.back();
      open.pop_back();
      if (b == flow_.exit() || reached[b]) continue;
      reached[b] = true;
      if (Skips(b))
        open.push_back(flow_.Join(b));
      else
        open.insert(open.end(), flow_.Next(b).begin(), flow_.Next(b).end());
    }
    return reached;
  }

  /// Marks the blocks that the kernel may run between a branch that is left out and its join: those
  /// of loops that the slice runs once, such as the loop that waits for a barrier in memory.
  std::vector<bool> LeftOut(const std::vector<bool>& reached) const {
    std::vector<bool> left_out(reached.size(), false);
    for (size_t b = 0; b < reached.size(); ++b) {
      if (!reached[b] || !Skips(b)) continue;
      for (size_t successor : flow_.Next(b)) {
        const std::vector<bool> side = flow_.Side(b, successor);
        for (size_t i = 0; i < left_out.size(); ++i) left_out[i] = left_out[i] || side[i];
      }
    }
    return left_out;
  }

  static std::string LabelOf(size_t block) { return "$slice_" + std::to_string(block); }

  size_t BlockAt(const std::string& label) const {
    const uint32_t at = function_.labels.at(label);
    return at < function_.body.size() ? flow_.BlockOf(at) : flow_.exit();
  }

  void Add(Instruction instruction, uint32_t weight = 0) {
    slice_.function.body.push_back(std::move(instruction));
    slice_.weights.push_back(weight);
  }

  void Jump(size_t block) {
    if (block == following_ && block < flow_.blocks().size()) return;
    Instruction jump;
    jump.line = line_;
    jump.opcode = block == flow_.exit() ? "ret" : "bra";
    if (block != flow_.exit()) {
      Operand to;
      to.kind = Operand::Kind::kSymbol;
      to.name = LabelOf(block);
      jump.operands = {to};
    }
    Add(std::move(jump));
  }

  void WriteBlock(size_t b) {
    const BasicBlock& block = flow_.blocks()[b];
    slice_.function.labels[LabelOf(b)] = static_cast<uint32_t>(slice_.function.body.size());
    line_ = function_.body[block.first].line;
    if (!left_out_[b]) {
      const auto instructions = static_cast<uint32_t>(block.end - block.first);
      slice_.counted.push_back({static_cast<uint32_t>(block.first), instructions});
      Add(Marker(), instructions);
    }
    for (size_t i = block.first; i < block.end; ++i) {
      if (chosen_.Keeps(i) && !EndsBlock(function_.body[i])) Add(function_.body[i]);
    }
    WriteEnd(b);
  }

  /// An instruction that counts the executions of a block.
  Instruction Marker() const {
    Instruction marker;
    marker.opcode = "mov";
    marker.modifiers = {"b32"};
    marker.line = line_;
    Operand to, from;
    to.kind = Operand::Kind::kRegister;
    to.reg = marker_;
    from.kind = Operand::Kind::kImmediate;
    marker.operands = {to, from};
    return marker;
  }

  void WriteEnd(size_t b) {
    const Instruction& last = LastOf(b);
    if (Skips(b)) return Jump(flow_.Join(b));
    if (!flow_.Decides(b) && last.opcode != "trap") return Jump(flow_.Next(b).front());
    if (!IsBranch(last)) {
      Add(last);
    } else if (last.opcode == "bra") {
      const size_t to = BlockAt(last.operands[0].name);
      if (last.guard < 0) return Jump(to);
      WriteBranch(last, to);
    } else {
      WriteIndexed(last);
    }
    if (last.guard >= 0) Jump(b + 1);
  }

  void WriteBranch(Instruction branch, size_t to) {
    if (to == flow_.exit()) {
      branch.opcode = "ret";
      branch.modifiers.clear();
      branch.operands.clear();
    } else {
      branch.operands[0].name = LabelOf(to);
    }
    Add(std::move(branch));
  }

  void WriteIndexed(const Instruction& branch) {
    const std::string& name = branch.operands[1].name;
    std::vector<std::string> targets;
    for (const std::string& label : function_.branch_targets.at(name))
      targets.push_back(LabelOf(BlockAt(label)));
    slice_.function.branch_targets[name] = std::move(targets);
    Add(branch);
  }

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Chooser& chosen_;
  WorkSlice& slice_;
  int marker_ = 0;
  size_t following_ = 0;  ///< the block that is written next
  uint32_t line_ = 0;
  std::vector<bool> left_out_;
};

/// True if an atomic of global memory decides when a loop around it ends.
bool TakesTurns(const ptx::Function& function, const ControlFlow& flow, const Chooser& chosen) {
  for (size_t i = 0; i < function.body.size(); ++i) {
    if (function.body[i].opcode != "atom" || !chosen.Keeps(i)) continue;
    const size_t block = flow.BlockOf(i);
    // The atomic is in a loop if it can be reached from itself.
    std::vector<bool> seen(flow.blocks().size(), false);
    std::vector<size_t> open = flow.Next(block);
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (at == flow.exit() || seen[at]) continue;
      seen[at] = true;
      open.insert(open.end(), flow.Next(at).begin(), flow.Next(at).end());
    }
    if (seen[block]) return true;
  }
  return false;
}

/// Allocations that the accesses for which `counts` holds may reach.
template <class F>
Allocations AllocationsOf(const BlockVariance& variance, F&& counts) {
  std::set<uint64_t> all;
  for (size_t i = 0; i < variance.memory().size(); ++i) {
    if (!counts(i)) continue;
    const auto& allocations = variance.AllocationsOf(i);
    if (allocations.empty()) return std::nullopt;
    all.insert(allocations.begin(), allocations.end());
  }
  return std::vector(all.begin(), all.end());
}

void NoteMemory(const BlockVariance& variance, const Chooser& chosen, WorkSlice& slice) {
  const auto writes = [&](size_t i) { return (variance.memory()[i].writes & kGlobalSpace) != 0; };
  const auto reads = [&](size_t i) { return (variance.memory()[i].reads & kGlobalSpace) != 0; };
  slice.stored = AllocationsOf(variance, writes);
  slice.read = AllocationsOf(variance, [&](size_t i) { return reads(i) && chosen.Keeps(i); });
  slice.reads_memory = !slice.read || !slice.read->empty();
  const Allocations written = AllocationsOf(variance,
                                            [&](size_t i) { return writes(i) && chosen.Keeps(i); });
  if (!written && slice.unknown.empty())
    slice.unknown = "a branch depends on stores to unknown memory";
  slice.written = written.value_or(std::vector<uint64_t>());
  slice.shares_memory = !slice.written.empty();
}

}  // namespace

WorkSlice SliceOf(const ptx::Function& function, KeptBranches branches,
                  const AllocationOf& allocation_of) {
  WorkSlice slice;
  slice.unknown = Obstacle(function);
  if (!slice.unknown.empty()) return slice;
  const ControlFlow flow(function);
  if (!flow.always_ends()) slice.unknown = "some of its code never ends";
  if (flow.blocks().size() > kMostBlocks) slice.unknown = "it has too many branches";
  if (!slice.unknown.empty() || flow.blocks().empty()) return slice;
  const BlockVariance variance(function, flow, allocation_of, branches == KeptBranches::kByData);
  const Chooser chosen(function, flow, variance, branches);
  slice.unknown = chosen.unknown();
  slice.alike = !chosen.any_branch();
  NoteMemory(variance, chosen, slice);
  if (slice.alike || !slice.unknown.empty()) return slice;
  slice.takes_turns = TakesTurns(function, flow, chosen);
  Writer(function, flow, chosen, slice);
  return slice;
}

}  // namespace atunner::vgpu
