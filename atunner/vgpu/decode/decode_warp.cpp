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

}  // namespace

Status DecodeWarp(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const std::string& opcode = instruction.opcode;
  if (opcode == "alloca" || opcode.starts_with("stack")) return DecodeStack(c, form, op);
  op.run = WarpHandler(form, op);
  const bool alone = opcode == "membar" || opcode == "fence" || opcode == "nanosleep" ||
                     opcode == "griddepcontrol" || opcode == "setmaxnreg" || opcode == "pmevent";
  if (opcode == "nanosleep") op.flow = Flow::kPatient;
  if (alone || op.run == nullptr) return {};
  if (instruction.operands.empty()) return c.Unsupported(instruction);
  if (opcode == "createpolicy") {
    const Operand& to = instruction.operands[0];
    op.dst = c.Destination(to);
    return op.dst != kNoSlot && c.RegisterBits(to.reg) == 64 ? Status{}
                                                             : Status(c.Unsupported(instruction));
  }
  const uint8_t variant = op.variant;
  op.dst = c.Destination(instruction.operands[0]);
  op.dst2 = instruction.operands[0].second ? c.SlotOf(*instruction.operands[0].second) : -1;
  for (size_t i = 1; i < instruction.operands.size() && i <= 4; ++i) {
    const bool predicate = opcode == "vote" && i == 1;
    Type type = predicate ? Type::kPred : Type::kB32;
    if (opcode == "match" && i == 1) type = form.type;
    op.src[i - 1] = c.Source(instruction.operands[i], type);
    if (op.src[i - 1] == kNoSlot) return c.Unsupported(instruction);
  }
  op.imm = opcode == "vote" && instruction.operands.size() > 1 && instruction.operands[1].negated;
  if (op.dst == kNoSlot && opcode != "elect") return c.Unsupported(instruction);
  // the operand that names the lanes
  const size_t members = opcode == "shfl" ? 4 : opcode == "elect" ? 1 : 2;
  if (opcode != "activemask") {
    if (instruction.operands.size() <= members) return c.Unsupported(instruction);
    op.flow = Flow::kCollective;
    op.target = static_cast<uint32_t>(members - 1);
  }
  op.variant = variant;
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
