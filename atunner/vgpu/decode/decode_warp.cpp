// Operations of the lanes of a warp with each other, and of the stack.
#include <bit>

#include "atunner/vgpu/decode/decoders.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

/// alloca d, size, align; stacksave d; stackrestore a.
Status DecodeStack(DecodeContext& c, const Form& form, Op& op) {
  constexpr uint64_t kDefaultAlignment = 8;
  constexpr uint64_t kMostAlignment = 1024;
  const Instruction& instruction = *form.instruction;
  const std::vector<ptx::Operand>& operands = instruction.operands;
  const bool claims = instruction.opcode == "alloca";
  if (operands.empty() || (claims && operands.size() < 2)) return c.Unsupported(instruction);
  op.run = StackHandler(form);
  op.width = static_cast<uint8_t>(ptx::BitsOf(form.type) / 8);
  op.imm = claims && operands.size() > 2 ? operands[2].bits : kDefaultAlignment;
  if (op.imm == 0 || op.imm > kMostAlignment || !std::has_single_bit(op.imm))
    return c.Unsupported(instruction);
  if (instruction.opcode != "alloca") op.src[0] = c.Source(operands[0], form.type);
  if (claims) op.src[0] = c.Source(operands[1], form.type);
  if (instruction.opcode != "stackrestore") op.dst = c.Destination(operands[0]);
  return op.src[0] == kNoSlot || op.dst == kNoSlot ? Status(c.Unsupported(instruction)) : Status{};
}

/// createpolicy: the policy has no effect, but its register is written.
Status DecodePolicy(DecodeContext& c, const Instruction& instruction, Op& op) {
  const Operand& to = instruction.operands[0];
  op.dst = c.Destination(to);
  return op.dst != kNoSlot && c.RegisterBits(to.reg) == 64 ? Status{}
                                                           : Status(c.Unsupported(instruction));
}

Status DecodeWarpSources(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  for (size_t i = 1; i < instruction.operands.size() && i <= 4; ++i) {
    const bool first = i == 1;
    const Type type = first && instruction.opcode == "vote"    ? Type::kPred
                      : first && instruction.opcode == "match" ? form.type
                                                               : Type::kB32;
    op.src[i - 1] = c.Source(instruction.operands[i], type);
    if (op.src[i - 1] == kNoSlot) return c.Unsupported(instruction);
  }
  return {};
}

/// True for instructions without operands that matter.
bool StandsAlone(const std::string& opcode) {
  return opcode == "membar" || opcode == "fence" || opcode == "nanosleep" ||
         opcode == "griddepcontrol" || opcode == "setmaxnreg" || opcode == "pmevent";
}

}  // namespace

Status DecodeWarp(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  const std::string& opcode = instruction.opcode;
  if (opcode == "alloca" || opcode.starts_with("stack")) return DecodeStack(c, form, op);
  op.run = WarpHandler(form, op);
  if (opcode == "nanosleep") {
    op.flow = Flow::kMayYield;
    op.src[0] = operands.empty() ? kNoSlot : c.Source(operands[0], Type::kU32);
    if (op.src[0] == kNoSlot) return c.Unsupported(instruction);
  }
  if (StandsAlone(opcode) || op.run == nullptr) return {};
  if (operands.empty()) return c.Unsupported(instruction);
  if (opcode == "createpolicy") return DecodePolicy(c, instruction, op);
  op.dst = c.Destination(operands[0]);
  op.dst2 = operands[0].second ? c.SlotOf(*operands[0].second) : -1;
  ATUNNER_RETURN_IF_ERROR(DecodeWarpSources(c, form, op));
  op.imm = opcode == "vote" && operands.size() > 1 && operands[1].negated;
  if (op.dst == kNoSlot && opcode != "elect") return c.Unsupported(instruction);
  if (opcode == "activemask") return {};
  const size_t members = opcode == "shfl" ? 4 : opcode == "elect" ? 1 : 2;  // operand with the mask
  if (operands.size() <= members) return c.Unsupported(instruction);
  op.flow = Flow::kCollective;
  op.target = static_cast<uint32_t>(members - 1);
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
