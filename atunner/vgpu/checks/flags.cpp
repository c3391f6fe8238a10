// Static analysis of strong accesses: which of them read flags.
//
// A volatile or relaxed load is either of a flag, whose value the program tests, or of data that
// other threads left there. The value of a flag decides a branch, directly or after arithmetic; a
// flag and data may also share a word. What is never tested must be ordered by something else.
#include <algorithm>
#include <set>

#include "atunner/vgpu/analysis/used_bytes.h"
#include "atunner/vgpu/checks/synchronisation.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;

bool Intersects(const std::vector<int>& registers, const std::set<int>& set) {
  return std::ranges::any_of(registers, [&](int reg) { return set.contains(reg); });
}

bool IsAtomic(const Instruction& i) { return i.opcode == "atom" || i.opcode == "red"; }

bool IsFloat(const Instruction& i) { return i.Has("f32") || i.Has("f64"); }

/// What the values of an instruction's results become.
class Consequences {
 public:
  Consequences(const ptx::Function& function, const std::vector<Use>& uses, size_t from)
      : function_(function), uses_(uses), float_(IsFloat(function.body[from])) {
    derived_.insert(uses[from].writes.begin(), uses[from].writes.end());
    for (bool more = true; more && !tested_;) {
      more = false;
      for (size_t i = 0; i < uses.size(); ++i) more |= i != from && Follow(i);
    }
  }
  bool tested() const { return tested_; }

 private:
  /// True if an instruction adds a register to those that derive from the result.
  bool Follow(size_t i) {
    const Instruction& instruction = function_.body[i];
    tested_ |= instruction.guard >= 0 && derived_.contains(instruction.guard);
    if (!Intersects(uses_[i].values, derived_)) return false;
    const std::string& opcode = instruction.opcode;
    const bool stored = opcode == "st" && !instruction.Has("global");
    // Others test what is left in the block's memory; floats are no flags.
    tested_ |= opcode == "brx" || opcode == "call" || opcode == "ret" || (stored && !float_) ||
               (IsAtomic(instruction) && instruction.Has("cas"));
    if (opcode == "ld" || opcode == "st" || IsAtomic(instruction)) return false;
    bool more = false;
    for (int reg : uses_[i].writes) more |= derived_.insert(reg).second;
    return more;
  }

  const ptx::Function& function_;
  const std::vector<Use>& uses_;
  std::set<int> derived_;
  bool float_;
  bool tested_ = false;
};

bool IsRead(const std::vector<Use>& uses, const ptx::Function& function, int reg) {
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto has = [reg](const std::vector<int>& list) {
      return std::ranges::find(list, reg) != list.end();
    };
    if (has(uses[i].values) || has(uses[i].addresses) || function.body[i].guard == reg) return true;
  }
  return false;
}

/// A place in memory as the code names it: a variable or a register, and an offset.
struct NamedPlace {
  std::string name;
  int reg = -1;
  uint64_t offset = 0;
  bool known = false;
  bool operator==(const NamedPlace&) const = default;
};

/// The only instruction that writes a register; nullptr if there are several.
const Instruction* DefinitionOf(const ptx::Function& function, const std::vector<Use>& uses,
                                int reg) {
  const Instruction* found = nullptr;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (std::ranges::find(uses[i].writes, reg) == uses[i].writes.end()) continue;
    if (found != nullptr) return nullptr;
    found = &function.body[i];
  }
  return found;
}

/// The place that a load or an atomic accesses. Copies of addresses are followed to their origin.
NamedPlace PlaceOf(const ptx::Function& function, const std::vector<Use>& uses,
                   const Instruction& access) {
  constexpr int kMostCopies = 8;
  const auto at = std::ranges::find(access.operands, ptx::Operand::Kind::kAddress,
                                    &ptx::Operand::kind);
  if (at == access.operands.end()) return {};
  NamedPlace place{at->name, at->reg, at->bits, true};
  for (int i = 0; i < kMostCopies && place.reg >= 0; ++i) {
    const Instruction* from = DefinitionOf(function, uses, place.reg);
    if (from == nullptr || from->operands.size() != 2 ||
        (from->opcode != "mov" && from->opcode != "cvta"))
      break;
    const ptx::Operand& origin = from->operands[1];
    if (origin.kind != ptx::Operand::Kind::kSymbol && origin.kind != ptx::Operand::Kind::kRegister)
      break;
    place.name = origin.name;
    place.reg = origin.reg;
    place.offset += origin.bits;
  }
  return place;
}

/// Sets AccessOrder::polls of ordinary loads that peek, see Peeks.
void FindPeeks(Kernel& kernel, const Code& code, const std::vector<Use>& uses) {
  const ptx::Function& function = *code.function;
  std::vector<NamedPlace> later;  // of the atomics behind the instruction at hand
  for (size_t i = function.body.size(); i-- > 0;) {
    const Instruction& instruction = function.body[i];
    if (IsAtomic(instruction)) later.push_back(PlaceOf(function, uses, instruction));
    Op& op = kernel.ops[code.first_op + i];
    if (instruction.opcode != "ld" || op.relaxed || later.empty()) continue;
    const NamedPlace place = PlaceOf(function, uses, instruction);
    op.order.polls = place.known && std::ranges::find(later, place) != later.end() &&
                     Consequences(function, uses, i).tested();
  }
}

void FindFlags(Kernel& kernel, const Code& code) {
  const ptx::Function& function = *code.function;
  const std::vector<Use> uses = UsesOf(function);
  for (size_t i = 0; i < function.body.size(); ++i) {
    Op& op = kernel.ops[code.first_op + i];
    const Instruction& instruction = function.body[i];
    if (instruction.opcode == "ld" && op.relaxed)
      op.order.polls = Consequences(function, uses, i).tested();
    if (instruction.opcode == "atom")
      op.order.polls = std::ranges::any_of(uses[i].writes,
                                           [&](int reg) { return IsRead(uses, function, reg); });
  }
  FindPeeks(kernel, code, uses);
}

}  // namespace

bool UsesAtomics(BlockState& x) {
  const auto [known, is_new] = x.log.analyses.try_emplace({x.kernel->ops.data(), sizeof(Op) - 6},
                                                          false);
  for (size_t i = 0; is_new && i < x.kernel->code.size(); ++i)
    known->second |= std::ranges::any_of(x.kernel->code[i].function->body, IsAtomic);
  return known->second;
}

void FindFlags(Kernel& kernel) {
  for (const Code& code : kernel.code) {
    const std::vector<ptx::Instruction>& body = code.function->body;
    bool any = false;
    for (size_t i = 0; i < body.size() && !any; ++i) {
      const bool load = body[i].opcode == "ld";
      any = IsAtomic(body[i]) || (load && kernel.ops[code.first_op + i].relaxed);
    }
    if (any) FindFlags(kernel, code);
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
