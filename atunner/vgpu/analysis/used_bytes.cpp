#include "atunner/vgpu/analysis/used_bytes.h"

#include <algorithm>
#include <set>

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;

bool IsOneOf(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

}  // namespace

const Code* CodeOf(const Kernel& kernel, const Op& op) {
  const auto index = static_cast<uint32_t>(&op - kernel.ops.data());
  const auto code = std::ranges::find_if(kernel.code, [&](const Code& c) {
    return index >= c.first_op && index - c.first_op < c.function->body.size();
  });
  return code == kernel.code.end() ? nullptr : &*code;
}

uint64_t UsedBytes(const Kernel& kernel, const Op& op) {
  const auto index = static_cast<uint32_t>(&op - kernel.ops.data());
  const Code* code = CodeOf(kernel, op);
  if (code == nullptr) return kAllBytes;
  const auto used = code->function->used_bytes.find(index - code->first_op);
  return used == code->function->used_bytes.end() ? kAllBytes : used->second;
}

bool Dropped(const Kernel& kernel, const Op& op, uint64_t offset, uint64_t bytes) {
  return (UsedBytes(kernel, op) >> offset & ((uint64_t{1} << bytes) - 1)) == 0;
}

bool OnlyChosenBetween(const Kernel& kernel, const Op& op) {
  const auto index = static_cast<uint32_t>(&op - kernel.ops.data());
  const Code* code = CodeOf(kernel, op);
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

std::vector<Copied> CopiesOf(const ptx::Function& function, const std::vector<Use>& uses) {
  std::vector<Copied> copies(function.registers.size(), Copied::kWithinBlock);
  const auto at_most = [&](int reg, Copied most) {
    Copied& now = copies[static_cast<size_t>(reg)];
    const bool less = most < now;
    if (less) now = most;
    return less;
  };
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < function.body.size(); ++i) {
      const Instruction& instruction = function.body[i];
      const bool copied = IsOneOf(instruction.opcode, {"st", "selp", "mov"});
      const bool within = instruction.Has("shared") || instruction.Has("shared::cta") ||
                          instruction.Has("local");
      Copied most = !copied                                ? Copied::kNo
                    : instruction.opcode != "st" || within ? Copied::kWithinBlock
                                                           : Copied::kAnywhere;
      for (int reg : copied ? uses[i].writes : std::vector<int>{})
        most = std::min(most, copies[static_cast<size_t>(reg)]);
      for (int reg : uses[i].addresses) more |= at_most(reg, Copied::kNo);
      for (int reg : uses[i].values) more |= at_most(reg, most);
    }
  }
  return copies;
}

Copied OnlyCopied(const Kernel& kernel, const Op& op, uint32_t element) {
  const auto index = static_cast<uint32_t>(&op - kernel.ops.data());
  const Code* code = CodeOf(kernel, op);
  if (code == nullptr) return Copied::kNo;
  const ptx::Function& function = *code->function;
  const Instruction& load = function.body[index - code->first_op];
  const ptx::Operand& to = load.operands[0];
  const bool vector = to.kind == ptx::Operand::Kind::kVector;
  if (load.opcode != "ld" || (vector && element >= to.elements.size())) return Copied::kNo;
  const int reg = vector ? to.elements[element].reg : to.reg;
  if (reg < 0) return Copied::kWithinBlock;
  return CopiesOf(function, UsesOf(function))[static_cast<size_t>(reg)];
}

namespace {

/// True if `test` holds for each instruction that reads a register, and for those that read its
/// copies.
template <class F>
bool EachUse(const ptx::Function& function, const std::vector<Use>& uses, int reg, F&& test) {
  const auto holds = [reg](const std::vector<int>& list) {
    return std::ranges::find(list, reg) != list.end();
  };
  for (size_t i = 0; i < uses.size(); ++i) {
    if (holds(uses[i].addresses) || function.body[i].guard == reg) return false;
    if (holds(uses[i].values) && !test(function.body[i])) return false;
  }
  return true;
}

/// Some of its bits are kept, others put in their place.
bool IsInsertedInto(const ptx::Function& function, const std::vector<Use>& uses, int reg) {
  return EachUse(function, uses, reg, [&](const Instruction& i) {
    if (i.opcode == "bfi")
      return i.operands.size() == 5 && i.operands[2].reg == reg && i.operands[1].reg != reg;
    const bool keeps = i.opcode == "and" && i.operands.size() == 3 && i.operands[0].reg >= 0 &&
                       i.operands[2].kind == ptx::Operand::Kind::kImmediate;
    return keeps && EachUse(function, uses, i.operands[0].reg, [](const Instruction& use) {
             return IsOneOf(use.opcode, {"or", "st"});
           });
  });
}

}  // namespace

bool MayReadUnwritten(const ptx::Function& function, const std::vector<Use>& uses,
                      const std::vector<Copied>& copies, size_t load) {
  const Instruction& i = function.body[load];
  const auto named = [&](std::string_view space) {
    return std::ranges::any_of(i.modifiers,
                               [&](const std::string& m) { return m.starts_with(space); });
  };
  if (i.opcode != "ld" || i.operands.size() != 2 || named("global") || named("const") ||
      named("shared"))
    return false;
  const int reg = i.operands[0].reg;
  if (i.operands[0].kind != ptx::Operand::Kind::kRegister || reg < 0) return false;
  const Copied how = copies[static_cast<size_t>(reg)];
  const bool piece = !named("local") ||
                     (i.modifiers.back().size() == 2 && i.modifiers.back()[1] == '8');
  return how == Copied::kWithinBlock || (how == Copied::kAnywhere && piece) ||
         IsInsertedInto(function, uses, reg);
}

bool MayReadUnwritten(const Kernel& kernel, const Op& op) {
  const auto index = static_cast<uint32_t>(&op - kernel.ops.data());
  const Code* code = CodeOf(kernel, op);
  if (code == nullptr) return false;
  const std::vector<Use> uses = UsesOf(*code->function);
  return MayReadUnwritten(*code->function, uses, CopiesOf(*code->function, uses),
                          index - code->first_op);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
