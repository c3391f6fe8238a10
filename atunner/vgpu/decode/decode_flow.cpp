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

Status DecodeBarrier(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  if (form.Has("warp")) {
    op.flow = Flow::kWarpSync;
    op.src[0] = operands.empty() ? c.Constant(~0u, false) : c.Source(operands[0], Type::kB32);
    return op.src[0] == kNoSlot ? Status(c.Unsupported(instruction)) : Status{};
  }
  if (form.Has("cluster")) {
    op.flow = Flow::kClusterBarrier;
    op.variant = form.Has("wait");
    op.relaxed = !form.Has("aligned");
    return {};
  }
  op.flow = Flow::kBarrier;
  const bool red = form.Has("red");
  const size_t first = red ? 1 : 0;
  if (operands.size() <= first + (red ? 1 : 0)) return c.Unsupported(instruction);
  op.src[0] = c.Source(operands[first], Type::kU32);
  const size_t count_at = first + 1;
  const bool has_count = operands.size() > count_at + (red ? 1 : 0);
  op.src[1] = has_count ? c.Source(operands[count_at], Type::kU32) : kNoSlot;
  if (op.src[0] == kNoSlot || (has_count && op.src[1] == kNoSlot))
    return c.Unsupported(instruction);
  op.variant = form.Has("arrive") ? 1 : red ? (form.Has("popc") ? 2 : form.Has("and") ? 3 : 4) : 0;
  if (red) {
    op.dst = c.Destination(operands[0]);
    op.src[2] = c.Source(operands.back(), Type::kPred);
    op.sign_extend = operands.back().negated;  // reused: the predicate is negated
    if (op.dst == kNoSlot || op.src[2] == kNoSlot) return c.Unsupported(instruction);
  }
  op.relaxed = instruction.opcode == "barrier" && !form.Has("aligned");
  const Operand& id = operands[first];
  if (id.kind == Operand::Kind::kImmediate && id.bits > 15)
    return c.Unsupported(instruction, ": there are 16 barriers");
  const bool constant = has_count && operands[count_at].kind == Operand::Kind::kImmediate;
  const uint64_t count = constant ? operands[count_at].bits : 0;
  if (count % kLanes != 0) return c.Unsupported(instruction, ": barriers are of whole warps");
  if (op.variant == 1 && (!has_count || (constant && count == 0)))
    return c.Unsupported(instruction, ": who arrives says how many threads there are");
  return {};
}

Status DecodeBranch(DecodeContext& c, const Instruction& instruction, Op& op) {
  const uint32_t first = c.CurrentCode().first_op;
  if (instruction.opcode == "brx") {
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
      c.kernel().lists.push_back(static_cast<int32_t>(first + at->second));
    }
    return {};
  }
  op.flow = Flow::kBranch;
  op.target = first + c.function().labels.at(instruction.operands[0].name);
  return {};
}

Status DecodeReturn(DecodeContext& c, Op& op) {
  op.flow = c.IsEntry() ? Flow::kExit : Flow::kReturn;
  op.target = static_cast<uint32_t>(c.code());
  return {};
}

/// call (result), target, (arguments), prototype: each part but the target may be missing.
Status DecodeCall(DecodeContext& c, const Instruction& instruction, Op& op) {
  const auto& operands = instruction.operands;
  const auto target = std::ranges::find_if(
      operands, [](const Operand& operand) { return operand.kind != Operand::Kind::kVector; });
  if (target == operands.end() || target - operands.begin() > 1) return c.Unsupported(instruction);
  CallSite site;
  if (target != operands.begin()) {
    for (const Operand& result : operands[0].elements) {
      ATUNNER_TRY(const FramePart part, CallParameter(c, result, instruction));
      site.results.push_back(part);
    }
  }
  if (target + 1 != operands.end() && (target + 1)->kind == Operand::Kind::kVector) {
    for (const Operand& argument : (target + 1)->elements) {
      ATUNNER_TRY(const FramePart part, CallParameter(c, argument, instruction));
      site.arguments.push_back(part);
    }
  }
  op.imm = c.kernel().calls.size();
  op.target = static_cast<uint32_t>(c.code());
  op.dst = c.frame_slot();
  if (target->kind == Operand::Kind::kRegister) {
    op.src[0] = c.SlotOf(target->reg);
    // Whatever the module's variables point to can be called here.
    for (const ptx::Variable& variable : c.module().globals()) {
      for (const auto& reference : variable.references) c.FunctionAddress(reference.second);
    }
    c.functions().AddIndirectCall(c.code());
    op.flow = Flow::kCall;
  } else if (const ptx::Function* function = c.module().Find(target->name);
             function && !function->is_entry) {
    site.target = c.functions().CodeOf(*function);
    if (site.arguments.size() != function->params.size())
      return c.Unsupported(instruction, ": wrong number of arguments");
    c.functions().AddCall(c.code(), site.target);
    op.flow = Flow::kCall;
  } else {
    op.run = SystemCallHandler(target->name, site.arguments.size(), site.results.size());
    if (op.run == nullptr) return c.Unsupported(instruction, " of '" + target->name + "'");
  }
  c.kernel().calls.push_back(std::move(site));
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
