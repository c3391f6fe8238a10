#include "atunner/vgpu/checks/shuffled_values.h"

#include <algorithm>
#include <set>

#include "atunner/vgpu/analysis/used_bytes.h"
#include "atunner/vgpu/checks/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;

bool IsOneOf(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

/// True if an undefined operand makes the result undefined. The operand of a bitwise and may be
/// masked out.
bool Carries(const Instruction& i) {
  return IsOneOf(i.opcode, {"mov", "cvt", "cvta", "add", "sub",   "mul",   "mad",  "fma", "div",
                            "rem", "abs", "neg",  "min", "max",   "sqrt",  "rcp",  "ex2", "lg2",
                            "sin", "cos", "tanh", "set", "setp",  "addc",  "subc", "sad", "or",
                            "xor", "not", "shl",  "shr", "mul24", "mad24", "rsqrt"});
}
bool Chooses(const Instruction& i) {
  return i.opcode == "selp" && i.operands.size() == 4 && !i.operands[3].negated;
}

bool LoadsShared(const Instruction& i) {
  return i.opcode == "ld" && !i.Has("global") && !i.Has("const") && !i.Has("param") &&
         !i.Has("local");
}

/// The registers that may hold what a shuffle returned, or what shared memory holds.
std::set<int> ShuffledRegisters(const ptx::Function& function, const std::vector<Use>& uses) {
  std::set<int> shuffled;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (LoadsShared(function.body[i]))
      shuffled.insert(uses[i].writes.begin(), uses[i].writes.end());
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < uses.size(); ++i) {
      const Instruction& instruction = function.body[i];
      if (instruction.opcode == "shfl" && !instruction.operands.empty()) {
        more |= instruction.operands[0].reg >= 0 &&
                shuffled.insert(instruction.operands[0].reg).second;
        continue;
      }
      const bool reads = (Carries(instruction) || Chooses(instruction)) &&
                         std::ranges::any_of(uses[i].values,
                                             [&](int reg) { return shuffled.contains(reg); });
      for (int reg : uses[i].writes) more |= reads && shuffled.insert(reg).second;
    }
  }
  return shuffled;
}

MaybeUndefined Describe(const Instruction& instruction, const Use& use,
                        const std::set<int>& shuffled, const std::vector<int32_t>& slots) {
  MaybeUndefined s;
  const auto take = [&](const std::vector<int>& registers, std::vector<int32_t>& into) {
    for (int reg : registers) {
      if (shuffled.contains(reg)) into.push_back(slots[static_cast<size_t>(reg)]);
    }
  };
  if (shuffled.contains(instruction.guard)) s.guard = slots[static_cast<size_t>(instruction.guard)];
  take(use.addresses, s.needs);
  take(use.writes, s.writes);
  if (instruction.opcode == "brx") take(use.values, s.needs);
  if (IsOneOf(instruction.opcode, {"st", "red", "atom"}) && !instruction.Has("local") &&
      !instruction.Has("param"))
    take(use.values, s.stored);
  for (size_t i = 0; Chooses(instruction) && i < 3; ++i) {
    const int reg = instruction.operands[i + 1].reg;
    if (reg >= 0 && (i == 2 || shuffled.contains(reg)))
      s.select[i] = slots[static_cast<size_t>(reg)];
  }
  if (Carries(instruction)) take(use.values, s.passes);
  s.copies = instruction.opcode == "shfl";
  if (s.copies) take({instruction.operands[1].reg}, s.passes);
  if (Chooses(instruction)) take({instruction.operands[3].reg}, s.passes);
  return s;
}

void FindUses(const Kernel& kernel, ShuffledValues& shuffled) {
  for (const Code& code : kernel.code) {
    const std::vector<Use> uses = UsesOf(*code.function);
    const std::set<int> registers = ShuffledRegisters(*code.function, uses);
    for (size_t i = 0; i < uses.size(); ++i) {
      MaybeUndefined use = Describe(code.function->body[i], uses[i], registers,
                                    code.slot_of_register);
      if (use.guard >= 0 || !use.needs.empty() || !use.stored.empty() || !use.writes.empty())
        shuffled.uses.emplace(static_cast<uint32_t>(code.first_op + i), std::move(use));
    }
  }
}

const MaybeUndefined* UseOf(const BlockState& x, const Op& op) {
  const auto at = x.shuffled.uses.find(static_cast<uint32_t>(&op - x.kernel->ops.data()));
  return at == x.shuffled.uses.end() ? nullptr : &at->second;
}

void Demand(BlockState& x, const Op& op, uint32_t lanes, const char* what) {
  if (lanes == 0) return;
  const ShuffledValues& from = x.shuffled;
  if (from.shuffle->list_written)
    return ReportUnwritten(x, *from.shuffle, from.lane,
                           "reads shared address " + Hex(static_cast<uint64_t>(from.source)) +
                               " before anything was written there, and the value " + what +
                               " at line " + std::to_string(LineOf(x, op)),
                           {Space::kShared, static_cast<uint64_t>(from.source), {}});
  Report(x, *from.shuffle, Hazard::Kind::kInvalidShuffle, from.lane,
         "shuffles from lane " + std::to_string(from.source) +
             ", which does not take part, and the value " + what + " at line " +
             std::to_string(LineOf(x, op)));
}

}  // namespace

namespace {

/// Begins to follow values, with the first that came from nowhere.
void BeginFollowing(BlockState& x, const Op& op, int lane, int source) {
  ShuffledValues& shuffled = x.shuffled;
  shuffled.shuffle = &op;
  shuffled.lane = lane;
  shuffled.source = source;
  x.watch = true;
  if (shuffled.tracked) return;
  shuffled.tracked = true;
  FindUses(*x.kernel, shuffled);
  shuffled.undefined.assign(x.warps.size(), std::vector<uint32_t>(x.kernel->register_slots));
}

/// True if a loaded value is only copied, exchanged and stored, and each store may not happen: it
/// has a guard or is elsewhere than the load.
bool MayBeDropped(const Kernel& kernel, const Op& op) {
  const Code* code = CodeOf(kernel, op);
  if (code == nullptr) return false;
  const ptx::Function& function = *code->function;
  const std::vector<Use> uses = UsesOf(function);
  const auto load = static_cast<size_t>(&op - kernel.ops.data()) - code->first_op;
  const std::vector<BasicBlock> blocks = BlocksOf(function);
  const auto home = std::ranges::find_if(
      blocks, [&](const BasicBlock& block) { return load >= block.first && load < block.end; });
  std::set<int> copies(uses[load].writes.begin(), uses[load].writes.end());
  const auto has = [&](const std::vector<int>& registers) {
    return std::ranges::any_of(registers, [&](int reg) { return copies.contains(reg); });
  };
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < uses.size(); ++i) {
      const Instruction& instruction = function.body[i];
      if (has(uses[i].addresses) || copies.contains(instruction.guard)) return false;
      if (i == load || !has(uses[i].values)) continue;
      const bool apart = instruction.guard >= 0 || home == blocks.end() || i < home->first ||
                         i >= home->end;
      if (instruction.opcode == "st" && apart) continue;
      if (!IsOneOf(instruction.opcode, {"mov", "selp", "shfl"})) return false;
      for (int reg : uses[i].writes) more |= copies.insert(reg).second;
    }
  }
  return true;
}

}  // namespace

bool FollowUnwritten(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t element) {
  if (!op.list_written || element >= op.list_size) return false;
  const auto [known, is_new] = x.log.analyses.try_emplace({&op, sizeof(Op) - 7}, false);
  if (is_new) known->second = MayBeDropped(*x.kernel, op);
  const int32_t slot = x.kernel->lists[op.list + element];
  if (!known->second || slot < 0) return false;
  BeginFollowing(x, op, lane, static_cast<int>(address));
  x.shuffled.undefined[x.warp->index][static_cast<size_t>(slot)] |= 1u << lane;
  return true;
}

void NoteAbsentSources(BlockState& x, const Op& op, uint32_t absent, const int* sources) {
  const int lane = std::countr_zero(absent);
  BeginFollowing(x, op, lane, sources[lane]);
}

void MoveShuffled(BlockState& x, const Op& op, uint32_t mask, uint32_t absent, const int* sources) {
  const MaybeUndefined* use = UseOf(x, op);
  if (use == nullptr || use->writes.empty()) return;
  std::vector<uint32_t>& of = x.shuffled.undefined[x.warp->index];
  uint32_t from = 0;
  for (int32_t slot : use->passes) from |= of[static_cast<size_t>(slot)];
  uint32_t undefined = absent;
  ForLanes(mask, [&](int l) { undefined |= (from >> sources[l] & 1u) << l; });
  uint32_t& result = of[static_cast<size_t>(use->writes.front())];
  result = (result & ~mask) | (undefined & mask);
}

void FollowShuffled(BlockState& x, const Op& op, uint32_t mask, uint32_t active) {
  const MaybeUndefined* use = UseOf(x, op);
  if (use == nullptr) return;
  const auto of = [&](int32_t slot) -> uint32_t& {
    return x.shuffled.undefined[x.warp->index][static_cast<size_t>(slot)];
  };
  if (use->guard >= 0) Demand(x, op, of(use->guard) & mask, "decides a branch");
  for (int32_t slot : use->needs) Demand(x, op, of(slot) & active, "is part of an address");
  for (int32_t slot : use->stored) Demand(x, op, of(slot) & active, "is stored");
  if (use->copies) return;  // a shuffle
  uint32_t result = 0;
  for (int32_t slot : use->passes) result |= of(slot);
  if (const auto [a, b, p] = use->select; p >= 0) {
    const uint32_t chosen = *x.Slot(p);
    if (a >= 0) result |= of(a) & chosen;
    if (b >= 0) result |= of(b) & ~chosen;
  }
  for (int32_t slot : use->writes) of(slot) = (of(slot) & ~active) | (result & active);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
