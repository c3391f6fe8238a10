// Registers that may be read before anything was written to them. The flow of the code tells once which those are, and
// only the operations that touch them are watched while they run.
//
// Compilers leave registers undefined on paths where their value does not matter, and copy and compute with them
// freely. So an undefined value is no hazard until it decides something: an address, a branch, a stored value. Bitwise
// operations and packing may mask it out, and what lanes exchange may not be asked for: their results count as defined.
#include <algorithm>
#include <set>

#include "atunner/vgpu/body_flow.h"
#include "atunner/vgpu/internal.h"
#include "atunner/vgpu/used_bytes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::Operand;

bool IsOneOf(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

/// An undefined operand makes the result undefined, and no more than that. Of a packed pair one half may be asked for
/// alone, so that packing does not pass.
bool Passes(const Instruction& i) {
  const auto packed = [](const Operand& operand) { return operand.kind == Operand::Kind::kVector; };
  if (i.opcode == "mov" && std::ranges::any_of(i.operands, packed)) return false;
  return IsOneOf(i.opcode, {"mov",  "cvt", "cvta", "add",  "sub",  "mul", "mad",   "fma",   "div",  "rem",
                            "abs",  "neg", "min",  "max",  "sqrt", "rcp", "ex2",   "lg2",   "sin",  "cos",
                            "tanh", "set", "setp", "addc", "subc", "sad", "mul24", "mad24", "rsqrt"});
}

/// Which registers are defined for sure, as bits.
class Defined {
 public:
  explicit Defined(size_t registers, bool all) : words_((registers + 63) / 64, all ? ~uint64_t{0} : 0) {}
  void Set(int reg) { words_[static_cast<size_t>(reg) / 64] |= uint64_t{1} << (reg % 64); }
  bool Has(int reg) const { return (words_[static_cast<size_t>(reg) / 64] >> (reg % 64)) & 1u; }
  /// True when that took something away.
  bool Meet(const Defined& other) {
    bool changed = false;
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t met = words_[i] & other.words_[i];
      changed |= met != words_[i];
      words_[i] = met;
    }
    return changed;
  }

 private:
  std::vector<uint64_t> words_;
};

/// One function: the basic blocks of its body and the registers that are suspect.
class FunctionFlow {
 public:
  explicit FunctionFlow(const Function& function) : function_(function), blocks_(BlocksOf(function)) {
    for (const Instruction& instruction : function.body) uses_.push_back(UseOf(instruction));
    FindSuspectRegisters();
    Spread();
  }
  const std::vector<Use>& uses() const { return uses_; }
  const std::set<int>& suspects() const { return suspects_; }

 private:
  /// Calls `f` for each register that instruction `i` reads, then notes what it writes.
  template <class F>
  void Step(size_t i, Defined& defined, F&& f) const {
    const Instruction& instruction = function_.body[i];
    const Use& use = uses_[i];
    if (instruction.guard >= 0) f(instruction.guard);
    for (int reg : use.addresses) f(reg);
    for (int reg : use.values) f(reg);
    if (instruction.guard >= 0) return;  // may write nothing
    for (int reg : use.writes) defined.Set(reg);
  }

  void FindSuspectRegisters() {
    if (blocks_.empty()) return;
    const size_t registers = function_.registers.size();
    std::vector<Defined> at(blocks_.size(), Defined(registers, true));
    at[0] = Defined(registers, false);
    std::set<size_t> work;
    for (size_t b = 0; b < blocks_.size(); ++b) work.insert(b);
    while (!work.empty()) {
      const size_t b = *work.begin();
      work.erase(work.begin());
      Defined defined = at[b];
      for (size_t i = blocks_[b].first; i < blocks_[b].end; ++i) Step(i, defined, [](int) {});
      for (size_t next : blocks_[b].next) {
        if (at[next].Meet(defined)) work.insert(next);
      }
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      Defined defined = at[b];
      for (size_t i = blocks_[b].first; i < blocks_[b].end; ++i) {
        Step(i, defined, [&](int reg) {
          if (!defined.Has(reg)) suspects_.insert(reg);
        });
      }
    }
  }

  /// What is computed from a suspect register is one.
  void Spread() {
    for (bool more = !suspects_.empty(); more;) {
      more = false;
      for (size_t i = 0; i < function_.body.size(); ++i) {
        const Instruction& instruction = function_.body[i];
        if (!Passes(instruction) && !IsOneOf(instruction.opcode, {"selp", "slct"})) continue;
        const Use& use = uses_[i];
        const bool reads = std::ranges::any_of(use.values, [&](int reg) { return suspects_.contains(reg); });
        for (int reg : use.writes) more |= reads && suspects_.insert(reg).second;
      }
    }
  }

  const Function& function_;
  std::vector<BasicBlock> blocks_;
  std::vector<Use> uses_;
  std::set<int> suspects_;
};

Suspect Describe(const Instruction& instruction, const Use& use, const std::set<int>& suspects,
                 const std::vector<int32_t>& slots) {
  Suspect s;
  const auto take = [&](const std::vector<int>& registers, std::vector<int32_t>& into) {
    for (int reg : registers) {
      if (suspects.contains(reg)) into.push_back(slots[static_cast<size_t>(reg)]);
    }
  };
  if (instruction.guard >= 0 && suspects.contains(instruction.guard))
    s.guard = slots[static_cast<size_t>(instruction.guard)];
  take(use.addresses, s.needs);
  take(use.writes, s.writes);
  const std::string& opcode = instruction.opcode;
  if (opcode == "brx") take(use.values, s.needs);
  // Block-wide sorts and scans carry the empty end of a last tile through shared memory, and drop it later.
  const bool keeps = opcode == "st" && std::ranges::none_of(instruction.modifiers, [](const std::string& m) {
                       return m == "local" || m.starts_with("param") || m.starts_with("shared");
                     });
  if (keeps || opcode == "red") {
    take(use.values, s.stored);
    if (s.stored.size() != use.values.size()) s.stored.clear();
  }
  const bool chooses = opcode == "selp" && instruction.operands.size() == 4 && !instruction.operands[3].negated;
  for (size_t i = 0; chooses && i < 3; ++i) {
    const int reg = instruction.operands[i + 1].reg;
    // Of the other registers nothing is known: their slots may tell of suspects that had them before.
    if (reg >= 0 && (i == 2 || suspects.contains(reg))) s.select[i] = slots[static_cast<size_t>(reg)];
  }
  if (Passes(instruction)) take(use.values, s.passes);
  if (chooses) take({instruction.operands[3].reg}, s.passes);
  return s;
}

}  // namespace

namespace {
/// The function that an operation is of, if its instruction is known.
const Code* CodeOf(const Kernel& kernel, uint32_t index) {
  const auto code = std::ranges::find_if(
      kernel.code, [&](const Code& c) { return index >= c.first_op && index - c.first_op < c.function->body.size(); });
  return code == kernel.code.end() ? nullptr : &*code;
}
}  // namespace

uint64_t UsedBytes(const Kernel& kernel, const Op& op) {
  const auto index = static_cast<uint32_t>(&op - kernel.ops.data());
  const Code* code = CodeOf(kernel, index);
  if (code == nullptr) return kAllBytes;
  const auto used = code->function->used_bytes.find(index - code->first_op);
  return used == code->function->used_bytes.end() ? kAllBytes : used->second;
}

bool Dropped(const Kernel& kernel, const Op& op, uint64_t offset, uint64_t bytes) {
  return (UsedBytes(kernel, op) >> offset & ((uint64_t{1} << bytes) - 1)) == 0;
}

bool OnlyChosenBetween(const Kernel& kernel, const Op& op) {
  const auto index = static_cast<uint32_t>(&op - kernel.ops.data());
  const Code* code = CodeOf(kernel, index);
  if (code == nullptr) return false;
  const std::vector<Instruction>& body = code->function->body;
  const Use load = UseOf(body[index - code->first_op]);
  std::set<int> copies(load.writes.begin(), load.writes.end());
  bool compared = false;
  bool chosen = false;
  for (bool more = true; more;) {
    more = false;
    for (const Instruction& instruction : body) {
      const Use use = UseOf(instruction);
      const auto is_copy = [&](int reg) { return copies.contains(reg); };
      if (std::ranges::any_of(use.addresses, is_copy)) return false;
      if (std::ranges::none_of(use.values, is_copy)) continue;
      compared |= instruction.opcode == "setp";
      chosen |= instruction.opcode == "selp" || instruction.opcode == "mov";
      if (!IsOneOf(instruction.opcode, {"setp", "selp", "mov"})) return false;
      for (int reg : use.writes) more |= instruction.opcode == "mov" && copies.insert(reg).second;
    }
  }
  return compared && chosen;
}

Copied OnlyCopied(const Kernel& kernel, const Op& op, uint32_t element) {
  const auto index = static_cast<uint32_t>(&op - kernel.ops.data());
  const Code* code = CodeOf(kernel, index);
  if (code == nullptr) return Copied::kNo;
  const std::vector<Instruction>& body = code->function->body;
  const Instruction& load = body[index - code->first_op];
  const Operand& to = load.operands[0];
  if (load.opcode != "ld" || (to.kind == Operand::Kind::kVector && element >= to.elements.size())) return Copied::kNo;
  std::set<int> copies = {to.kind == Operand::Kind::kVector ? to.elements[element].reg : to.reg};
  Copied found = Copied::kWithinBlock;
  for (bool more = true; more;) {
    more = false;
    for (const Instruction& instruction : body) {
      const Use use = UseOf(instruction);
      const auto is_copy = [&](int reg) { return copies.contains(reg); };
      if (std::ranges::any_of(use.addresses, is_copy)) return Copied::kNo;
      if (std::ranges::none_of(use.values, is_copy)) continue;
      if (!IsOneOf(instruction.opcode, {"st", "selp", "mov"})) return Copied::kNo;
      const bool within = instruction.Has("shared") || instruction.Has("shared::cta") || instruction.Has("local");
      if (instruction.opcode == "st" && !within) found = Copied::kAnywhere;
      for (int reg : use.writes) more |= copies.insert(reg).second;
    }
  }
  return found;
}

Kernel FindSuspects(const Kernel& kernel) {
  Kernel marked = kernel;
  for (const Code& code : kernel.code) {
    const FunctionFlow flow(*code.function);
    if (flow.suspects().empty()) continue;
    const std::vector<int32_t>& slots = code.slot_of_register;
    for (int reg : flow.suspects()) marked.suspect_slots.push_back(slots[static_cast<size_t>(reg)]);
    for (size_t i = 0; i < code.function->body.size(); ++i) {
      const auto index = static_cast<uint32_t>(code.first_op + i);
      Suspect suspect = Describe(code.function->body[i], flow.uses()[i], flow.suspects(), slots);
      const bool watched =
          suspect.guard >= 0 || !suspect.needs.empty() || !suspect.stored.empty() || !suspect.writes.empty();
      if (!watched) continue;
      suspect.flow = marked.ops[index].flow;
      marked.ops[index].flow = Flow::kSuspect;
      marked.suspects.emplace(index, std::move(suspect));
    }
  }
  FindFlow(marked);
  return marked;
}

void CheckSuspect(Exec& x, const Op& op, const Suspect& suspect, uint32_t mask, uint32_t active) {
  std::vector<uint32_t>& undefined = x.warp->undefined;
  const auto of = [&](int32_t slot) -> uint32_t& { return undefined[static_cast<size_t>(slot)]; };
  const auto report = [&](uint32_t lanes, const char* what) {
    if (lanes == 0 || ReportedBefore(x, op, Hazard::Kind::kUninitialisedRegister)) return;
    Report(x, op, Hazard::Kind::kUninitialisedRegister, std::countr_zero(lanes), what);
  };
  if (suspect.guard >= 0) {
    report(of(suspect.guard) & mask, "branches on a variable that nothing was written to");
    of(suspect.guard) &= ~mask;  // once is enough
  }
  for (int32_t slot : suspect.needs) {
    report(of(slot) & active, "computes an address from a variable that nothing was written to");
    of(slot) &= ~active;
  }
  uint32_t stored = suspect.stored.empty() ? 0 : active;
  for (int32_t slot : suspect.stored) stored &= of(slot);
  report(stored, "stores a variable that nothing was written to");
  uint32_t result = 0;
  for (int32_t slot : suspect.passes) result |= of(slot);
  if (const auto [a, b, p] = suspect.select; p >= 0) {
    const uint32_t chosen = *x.Slot(p);
    result |= (a >= 0 ? of(a) & chosen : 0) | (b >= 0 ? of(b) & ~chosen : 0);
  }
  for (int32_t slot : suspect.writes) of(slot) = (of(slot) & ~active) | (result & active);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
