// Barriers, branches and calls.
#include <algorithm>

#include "atunner/vgpu/decode/decoders.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

Result<FramePart> CallParameter(DecodeContext& c, const Operand& operand,
                                const Instruction& instruction) {
  const auto at = std::ranges::find(c.function().local, operand.name, &ptx::Variable::name);
  if (operand.kind != Operand::Kind::kSymbol || at == c.function().local.end())
    return c.Unsupported(instruction, ": an argument that is no .param variable");
  const Code& code = c.CurrentCode();
  const uint64_t locals = code.frame_bytes - (c.function().local_bytes + 15) / 16 * 16;
  return FramePart{static_cast<uint32_t>(locals + at->offset), static_cast<uint32_t>(at->bytes)};
}

}  // namespace

namespace {

Status DecodeWarpBarrier(DecodeContext& c, const Instruction& instruction, Op& op) {
  const auto& operands = instruction.operands;
  op.flow = Flow::kWarpSync;
  op.src[0] = operands.empty() ? c.Constant(~0u, false) : c.Source(operands[0], Type::kB32);
  return op.src[0] == kNoSlot ? Status(c.Unsupported(instruction)) : Status{};
}

uint8_t BarrierVariant(const Form& form) {
  if (form.Has("arrive")) return 1;
  if (!form.Has("red")) return 0;
  return form.Has("popc") ? 2 : form.Has("and") ? 3 : 4;
}

/// Limits of barrier numbers and thread counts that the assembler checks. `count`: nullptr if there
/// is none.
Status CheckBarrier(DecodeContext& c, const Instruction& instruction, const Op& op,
                    const Operand& id, const Operand* count) {
  if (id.kind == Operand::Kind::kImmediate && id.bits > 15)
    return c.Unsupported(instruction, ": there are 16 barriers");
  const bool constant = count != nullptr && count->kind == Operand::Kind::kImmediate;
  const uint64_t threads = constant ? count->bits : 0;
  if (threads % kLanes != 0) return c.Unsupported(instruction, ": barriers are of whole warps");
  if (op.variant == 1 && (count == nullptr || (constant && threads == 0)))
    return c.Unsupported(instruction, ": an arrival needs the number of threads");
  return {};
}

/// Destination and predicate of bar.red.
Status DecodeBarrierReduction(DecodeContext& c, const Instruction& instruction, Op& op) {
  const auto& operands = instruction.operands;
  op.dst = c.Destination(operands[0]);
  op.src[2] = c.Source(operands.back(), Type::kPred);
  op.sign_extend = operands.back().negated;  // here: the predicate is negated
  return op.dst == kNoSlot || op.src[2] == kNoSlot ? Status(c.Unsupported(instruction)) : Status{};
}

Status DecodeIndexedBranch(DecodeContext& c, const Instruction& instruction, Op& op) {
  const auto targets = c.function().branch_targets.find(
      instruction.operands.size() == 2 ? instruction.operands[1].name : "");
  if (targets == c.function().branch_targets.end()) return c.Unsupported(instruction);
  op.flow = Flow::kBranchIndexed;
  op.src[0] = c.Source(instruction.operands[0], Type::kU32);
  if (op.src[0] == kNoSlot) return c.Unsupported(instruction);
  op.list = static_cast<uint32_t>(c.kernel().lists.size());
  op.imm = targets->second.size();
  for (const std::string& label : targets->second) {
    const auto at = c.function().labels.find(label);
    if (at == c.function().labels.end())
      return c.Unsupported(instruction, ": unknown label " + label);
    c.kernel().lists.push_back(static_cast<int32_t>(c.CurrentCode().first_op + at->second));
  }
  return {};
}

}  // namespace

Status DecodeBarrier(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  if (form.Has("warp")) return DecodeWarpBarrier(c, instruction, op);
  if (form.Has("cluster")) {
    op.flow = Flow::kClusterBarrier;
    op.variant = form.Has("wait");
    op.relaxed = !form.Has("aligned");
    return {};
  }
  op.flow = Flow::kBarrier;
  op.variant = BarrierVariant(form);
  op.relaxed = instruction.opcode == "barrier" && !form.Has("aligned");
  // bar.red has a destination before the number and a predicate at the end
  const size_t extra = form.Has("red") ? 1 : 0;
  if (operands.size() <= 2 * extra) return c.Unsupported(instruction);
  const Operand& id = operands[extra];
  const Operand* count = operands.size() > 1 + 2 * extra ? &operands[extra + 1] : nullptr;
  op.src[0] = c.Source(id, Type::kU32);
  op.src[1] = count != nullptr ? c.Source(*count, Type::kU32) : kNoSlot;
  if (op.src[0] == kNoSlot || (count != nullptr && op.src[1] == kNoSlot))
    return c.Unsupported(instruction);
  if (extra > 0) ATUNNER_RETURN_IF_ERROR(DecodeBarrierReduction(c, instruction, op));
  return CheckBarrier(c, instruction, op, id, count);
}

Status DecodeBranch(DecodeContext& c, const Instruction& instruction, Op& op) {
  if (instruction.opcode == "brx") return DecodeIndexedBranch(c, instruction, op);
  op.flow = Flow::kBranch;
  op.target = c.CurrentCode().first_op + c.function().labels.at(instruction.operands[0].name);
  return {};
}

Status DecodeReturn(DecodeContext& c, Op& op) {
  op.flow = c.IsEntry() ? Flow::kExit : Flow::kReturn;
  op.target = static_cast<uint32_t>(c.code());
  return {};
}

namespace {

/// The parts of a list of arguments or results.
Result<std::vector<FramePart>> CallParameters(DecodeContext& c, const Operand& list,
                                              const Instruction& instruction) {
  std::vector<FramePart> parts;
  for (const Operand& element : list.elements) {
    ATUNNER_TRY(const FramePart part, CallParameter(c, element, instruction));
    parts.push_back(part);
  }
  return parts;
}

/// A call by pointer may reach every function to which the module's variables point.
void DecodeIndirectCall(DecodeContext& c, int reg, Op& op) {
  op.src[0] = c.SlotOf(reg);
  for (const ptx::Variable& variable : c.module().globals()) {
    for (const auto& reference : variable.references) c.FunctionAddress(reference.second);
  }
  c.functions().AddIndirectCall(c.code());
  op.flow = Flow::kCall;
}

Status DecodeCallTarget(DecodeContext& c, const Operand& target, const Instruction& instruction,
                        CallSite& site, Op& op) {
  if (target.kind == Operand::Kind::kRegister)
    return DecodeIndirectCall(c, target.reg, op), Status{};
  const ptx::Function* function = c.module().Find(target.name);
  if (function == nullptr || function->is_entry) {
    op.run = SystemCallHandler(target.name, site.arguments.size(), site.results.size());
    return op.run == nullptr ? Status(c.Unsupported(instruction, " of '" + target.name + "'"))
                             : Status{};
  }
  site.target = c.functions().CodeOf(*function);
  if (site.arguments.size() != function->params.size())
    return c.Unsupported(instruction, ": wrong number of arguments");
  c.functions().AddCall(c.code(), site.target);
  op.flow = Flow::kCall;
  return {};
}

}  // namespace

/// call (result), target, (arguments), prototype: each part but the target may be missing.
Status DecodeCall(DecodeContext& c, const Instruction& instruction, Op& op) {
  const auto& operands = instruction.operands;
  const auto target = std::ranges::find_if(
      operands, [](const Operand& operand) { return operand.kind != Operand::Kind::kVector; });
  if (target == operands.end() || target - operands.begin() > 1) return c.Unsupported(instruction);
  CallSite site;
  if (target != operands.begin()) {
    ATUNNER_TRY(site.results, CallParameters(c, operands[0], instruction));
  }
  if (target + 1 != operands.end() && (target + 1)->kind == Operand::Kind::kVector) {
    ATUNNER_TRY(site.arguments, CallParameters(c, *(target + 1), instruction));
  }
  op.imm = c.kernel().calls.size();
  op.target = static_cast<uint32_t>(c.code());
  op.dst = c.frame_slot();
  ATUNNER_RETURN_IF_ERROR(DecodeCallTarget(c, *target, instruction, site, op));
  c.kernel().calls.push_back(std::move(site));
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
