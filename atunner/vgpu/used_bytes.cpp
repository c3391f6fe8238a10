// What becomes of what loads read, as far as a function's text tells.
#include "atunner/vgpu/used_bytes.h"

#include <algorithm>
#include <set>

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;

bool IsOneOf(std::string_view opcode, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

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
      const bool within = instruction.Has("shared") || instruction.Has("shared::cta") || instruction.Has("local");
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
  const Code* code = CodeOf(kernel, index);
  if (code == nullptr) return Copied::kNo;
  const ptx::Function& function = *code->function;
  const Instruction& load = function.body[index - code->first_op];
  const ptx::Operand& to = load.operands[0];
  const bool vector = to.kind == ptx::Operand::Kind::kVector;
  if (load.opcode != "ld" || (vector && element >= to.elements.size())) return Copied::kNo;
  const int reg = vector ? to.elements[element].reg : to.reg;
  if (reg < 0) return Copied::kWithinBlock;
  std::vector<Use> uses;
  for (const Instruction& instruction : function.body) uses.push_back(UseOf(instruction));
  return CopiesOf(function, uses)[static_cast<size_t>(reg)];
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
