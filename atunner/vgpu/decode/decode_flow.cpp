// What lanes do together, barriers, branches and calls.
#include <algorithm>
#include <bit>

#include "atunner/vgpu/decode/decoder.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// alloca d, size, align; stacksave d; stackrestore a.
Status Decoder::DecodeStack(const Form& form, Op& op) {
  constexpr uint64_t kDefaultAlignment = 8;
  constexpr uint64_t kMostAlignment = 1024;
  const Instruction& instruction = *form.instruction;
  const std::vector<ptx::Operand>& operands = instruction.operands;
  const bool claims = instruction.opcode == "alloca";
  if (operands.empty() || (claims && operands.size() < 2)) return Unsupported(instruction);
  op.run = StackHandler(form);
  op.width = static_cast<uint8_t>(ptx::BitsOf(form.type) / 8);
  op.imm = claims && operands.size() > 2 ? operands[2].bits : kDefaultAlignment;
  if (op.imm == 0 || op.imm > kMostAlignment || !std::has_single_bit(op.imm))
    return Unsupported(instruction);
  if (instruction.opcode != "alloca") op.src[0] = Source(operands[0], form.type);
  if (claims) op.src[0] = Source(operands[1], form.type);
  if (instruction.opcode != "stackrestore") op.dst = Destination(operands[0]);
  return op.src[0] == kNoSlot || op.dst == kNoSlot ? Status(Unsupported(instruction)) : Status{};
}

Status Decoder::DecodeWarp(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const std::string& opcode = instruction.opcode;
  if (opcode == "alloca" || opcode.starts_with("stack")) return DecodeStack(form, op);
  op.run = WarpHandler(form, op);
  const bool alone = opcode == "membar" || opcode == "fence" || opcode == "nanosleep" ||
                     opcode == "griddepcontrol" || opcode == "setmaxnreg" || opcode == "pmevent";
  if (opcode == "nanosleep") op.flow = Flow::kPatient;
  if (alone || op.run == nullptr) return {};
  if (instruction.operands.empty()) return Unsupported(instruction);
  if (opcode == "createpolicy") {
    const Operand& to = instruction.operands[0];
    op.dst = Destination(to);
    return op.dst != kNoSlot && RegisterBits(to.reg) == 64 ? Status{}
                                                           : Status(Unsupported(instruction));
  }
  const uint8_t variant = op.variant;
  op.dst = Destination(instruction.operands[0]);
  op.dst2 = instruction.operands[0].second
                ? slots_[static_cast<size_t>(*instruction.operands[0].second)]
                : -1;
  for (size_t i = 1; i < instruction.operands.size() && i <= 4; ++i) {
    const bool predicate = opcode == "vote" && i == 1;
    Type type = predicate ? Type::kPred : Type::kB32;
    if (opcode == "match" && i == 1) type = form.type;
    op.src[i - 1] = Source(instruction.operands[i], type);
    if (op.src[i - 1] == kNoSlot) return Unsupported(instruction);
  }
  op.imm = opcode == "vote" && instruction.operands.size() > 1 && instruction.operands[1].negated;
  if (op.dst == kNoSlot && opcode != "elect") return Unsupported(instruction);
  // the operand that names the lanes
  const size_t members = opcode == "shfl" ? 4 : opcode == "elect" ? 1 : 2;
  if (opcode != "activemask") {
    if (instruction.operands.size() <= members) return Unsupported(instruction);
    op.flow = Flow::kCollective;
    op.target = static_cast<uint32_t>(members - 1);
  }
  op.variant = variant;
  return {};
}

namespace {
std::vector<ptx::Operand> Flatten(const std::vector<ptx::Operand>& operands) {
  std::vector<ptx::Operand> all;
  for (const ptx::Operand& operand : operands) {
    if (operand.kind == ptx::Operand::Kind::kVector)
      all.insert(all.end(), operand.elements.begin(), operand.elements.end());
    else
      all.push_back(operand);
  }
  return all;
}
}  // namespace

/// ldmatrix r, [p]; stmatrix [p], r; movmatrix d, a.
Status Decoder::DecodeMatrix(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  if (instruction.operands.size() != 2) return Unsupported(instruction);
  op.run = MatrixHandler(form, op);
  if (instruction.opcode == "movmatrix") {
    op.dst = Destination(instruction.operands[0]);
    op.src[0] = Source(instruction.operands[1], Type::kB32);
    return op.dst == kNoSlot || op.src[0] == kNoSlot ? Status(Unsupported(instruction)) : Status{};
  }
  const bool load = instruction.opcode == "ldmatrix";
  const Operand& registers = instruction.operands[load ? 0 : 1];
  const std::vector<Operand> list = registers.kind == Operand::Kind::kVector
                                        ? registers.elements
                                        : std::vector<Operand>{registers};
  const uint8_t variant = op.variant;
  ATUNNER_RETURN_IF_ERROR(List(list, op, instruction, load));
  ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[load ? 1 : 0], instruction, op, op.src[0]));
  op.space = Space::kShared;
  op.variant = variant;
  if (op.src[0] == kNoSlot) op.src[0] = Constant(0, false), op.narrow_address = true;
  const size_t matrices = form.Has("x4") ? 4 : form.Has("x2") ? 2 : 1;
  return list.size() == matrices ? Status{} : Status(Unsupported(instruction));
}

/// mma d, a, b, c: all registers in one list.
Status Decoder::DecodeTensor(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const bool sparse = form.Has("sp") || form.Has("sp::ordered_metadata");
  if (instruction.operands.size() != (sparse ? 6 : 4)) return Unsupported(instruction);
  op.run = TensorHandler(form, op);
  if (op.run == nullptr) return {};
  const uint8_t variant = op.variant;
  // A sparse product's last operand is a number that the handler has read.
  const std::vector<Operand> all = Flatten(
      {instruction.operands.begin(), instruction.operands.begin() + (sparse ? 5 : 4)});
  const bool wide = form.type == Type::kF64;
  ATUNNER_RETURN_IF_ERROR(List(all, op, instruction, false,
                               wide                      ? Type::kF64
                               : form.type == Type::kF32 ? Type::kF32
                                                         : Type::kB32));
  op.variant = variant;
  const bool fits = all.size() == op.imm && Writable(op, Flatten({instruction.operands[0]}).size());
  return fits ? Status{} : Status(Unsupported(instruction, ": registers"));
}

/// wmma.load r, [p], stride; wmma.store [p], r, stride; wmma.mma d, a, b, c. The shape is packed in
/// `target`.
Status Decoder::DecodeWmma(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = WmmaHandler(form, op);
  if (op.run == nullptr) return {};
  const uint32_t options = op.target;
  const bool wide = form.Has("f64");
  if (form.Has("mma")) {
    if (operands.size() != 4) return Unsupported(instruction);
    ATUNNER_RETURN_IF_ERROR(
        List(Flatten(operands), op, instruction, false, wide ? Type::kF64 : Type::kB32));
    return Writable(op, operands[0].elements.size()) ? Status{} : Status(Unsupported(instruction));
  }
  const bool load = form.Has("load");
  if (operands.size() < 2) return Unsupported(instruction);
  op.space = SpaceOf(form);
  ATUNNER_RETURN_IF_ERROR(Address(operands[load ? 1 : 0], instruction, op, op.src[0]));
  op.src[1] = operands.size() > 2 ? Source(operands[2], Type::kU32) : kNoSlot;
  if (operands.size() > 2 && op.src[1] == kNoSlot) return Unsupported(instruction);
  op.target = options;
  return List(Flatten({operands[load ? 0 : 1]}), op, instruction, load,
              wide ? Type::kF64 : Type::kB32);
}

/// wgmma.mma_async d, a, b, scale-d, …: registers of D and of A in one list, descriptors in src. Of
/// a sparse A, metadata and selector stand before the scale.
Status Decoder::DecodeWgmma(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = WgmmaHandler(form, op);
  if (op.run == nullptr) return {};
  if (form.Has("wait_group")) {
    if (operands.size() != 1 || operands[0].kind != Operand::Kind::kImmediate)
      return Unsupported(instruction);
    op.imm = operands[0].bits;
  }
  if (!form.Has("mma_async")) return {};
  const size_t accumulators = op.list_size;
  const bool in_registers = operands[1].kind == Operand::Kind::kVector;
  if (operands[0].elements.size() != accumulators ||
      (in_registers && operands[1].elements.size() != 4))
    return Unsupported(instruction, ": registers");
  std::vector<Operand> registers = operands[0].elements;
  if (in_registers)
    registers.insert(registers.end(), operands[1].elements.begin(), operands[1].elements.end());
  ATUNNER_RETURN_IF_ERROR(List(registers, op, instruction, false));
  if (!Writable(op, accumulators)) return Unsupported(instruction, ": registers");
  op.width = in_registers ? 4 : 0;  // of the list, registers that are only read
  op.src[0] = in_registers ? Constant(0, true) : Source(operands[1], Type::kB64);
  op.src[1] = Source(operands[2], Type::kB64);
  const bool sparse = form.Has("sp");
  const Operand& scale = operands[sparse ? 5 : 3];
  op.src[2] = Source(scale, Type::kPred);
  op.sign_extend = scale.negated;  // reused: the predicate is negated
  if (sparse) op.src[3] = Source(operands[3], Type::kB32);
  const bool found = std::ranges::find(op.src, kNoSlot) == op.src.end();
  return found ? Status{} : Status(Unsupported(instruction));
}

Status Decoder::DecodeBarrier(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  if (form.Has("warp")) {
    op.flow = Flow::kWarpSync;
    op.src[0] = operands.empty() ? Constant(~0u, false) : Source(operands[0], Type::kB32);
    return op.src[0] == kNoSlot ? Status(Unsupported(instruction)) : Status{};
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
  if (operands.size() <= first + (red ? 1 : 0)) return Unsupported(instruction);
  op.src[0] = Source(operands[first], Type::kU32);
  const size_t count_at = first + 1;
  const bool has_count = operands.size() > count_at + (red ? 1 : 0);
  op.src[1] = has_count ? Source(operands[count_at], Type::kU32) : kNoSlot;
  if (op.src[0] == kNoSlot || (has_count && op.src[1] == kNoSlot)) return Unsupported(instruction);
  op.variant = form.Has("arrive") ? 1 : red ? (form.Has("popc") ? 2 : form.Has("and") ? 3 : 4) : 0;
  if (red) {
    op.dst = Destination(operands[0]);
    op.src[2] = Source(operands.back(), Type::kPred);
    op.sign_extend = operands.back().negated;  // reused: the predicate is negated
    if (op.dst == kNoSlot || op.src[2] == kNoSlot) return Unsupported(instruction);
  }
  op.relaxed = instruction.opcode == "barrier" && !form.Has("aligned");
  const Operand& id = operands[first];
  if (id.kind == Operand::Kind::kImmediate && id.bits > 15)
    return Unsupported(instruction, ": there are 16 barriers");
  const bool constant = has_count && operands[count_at].kind == Operand::Kind::kImmediate;
  const uint64_t count = constant ? operands[count_at].bits : 0;
  if (count % kLanes != 0) return Unsupported(instruction, ": barriers are of whole warps");
  if (op.variant == 1 && (!has_count || (constant && count == 0)))
    return Unsupported(instruction, ": who arrives says how many threads there are");
  return {};
}

Status Decoder::DecodeBranch(const Instruction& instruction, Op& op) {
  const uint32_t first = kernel_.code[static_cast<size_t>(code_)].first_op;
  if (instruction.opcode == "brx") {
    const auto targets = function_->branch_targets.find(
        instruction.operands.size() == 2 ? instruction.operands[1].name : "");
    if (targets == function_->branch_targets.end()) return Unsupported(instruction);
    op.flow = Flow::kBranchIndexed;
    op.src[0] = Source(instruction.operands[0], Type::kU32);
    if (op.src[0] == kNoSlot) return Unsupported(instruction);
    op.list = static_cast<uint32_t>(kernel_.lists.size());
    op.imm = targets->second.size();
    for (const std::string& label : targets->second) {
      const auto at = function_->labels.find(label);
      if (at == function_->labels.end())
        return Unsupported(instruction, ": unknown label " + label);
      kernel_.lists.push_back(static_cast<int32_t>(first + at->second));
    }
    return {};
  }
  op.flow = Flow::kBranch;
  op.target = first + function_->labels.at(instruction.operands[0].name);
  return {};
}

Status Decoder::DecodeReturn(Op& op) {
  op.flow = IsEntry() ? Flow::kExit : Flow::kReturn;
  op.target = static_cast<uint32_t>(code_);
  return {};
}

Result<FramePart> Decoder::CallParameter(const Operand& operand,
                                         const Instruction& instruction) const {
  const auto at = std::ranges::find(function_->local, operand.name, &ptx::Variable::name);
  if (operand.kind != Operand::Kind::kSymbol || at == function_->local.end())
    return Unsupported(instruction, ": an argument that is no .param variable");
  const Code& code = kernel_.code[static_cast<size_t>(code_)];
  const uint64_t locals = code.frame_bytes - (function_->local_bytes + 15) / 16 * 16;
  return FramePart{static_cast<uint32_t>(locals + at->offset), static_cast<uint32_t>(at->bytes)};
}

/// call (result), target, (arguments), prototype: each part but the target may be missing.
Status Decoder::DecodeCall(const Instruction& instruction, Op& op) {
  const auto& operands = instruction.operands;
  const auto target = std::ranges::find_if(
      operands, [](const Operand& operand) { return operand.kind != Operand::Kind::kVector; });
  if (target == operands.end() || target - operands.begin() > 1) return Unsupported(instruction);
  CallSite site;
  if (target != operands.begin()) {
    for (const Operand& result : operands[0].elements) {
      ATUNNER_TRY(const FramePart part, CallParameter(result, instruction));
      site.results.push_back(part);
    }
  }
  if (target + 1 != operands.end() && (target + 1)->kind == Operand::Kind::kVector) {
    for (const Operand& argument : (target + 1)->elements) {
      ATUNNER_TRY(const FramePart part, CallParameter(argument, instruction));
      site.arguments.push_back(part);
    }
  }
  op.imm = kernel_.calls.size();
  op.target = static_cast<uint32_t>(code_);
  op.dst = frame_slot_;
  if (target->kind == Operand::Kind::kRegister) {
    op.src[0] = slots_[static_cast<size_t>(target->reg)];
    // Whatever the module's variables point to can be called here.
    for (const ptx::Variable& variable : module_.globals()) {
      for (const auto& reference : variable.references) FunctionAddress(reference.second);
    }
    edges_.emplace_back(code_, -1);
    op.flow = Flow::kCall;
  } else if (const ptx::Function* function = module_.Find(target->name);
             function && !function->is_entry) {
    site.target = CodeOf(*function);
    if (site.arguments.size() != function->params.size())
      return Unsupported(instruction, ": wrong number of arguments");
    edges_.emplace_back(code_, site.target);
    op.flow = Flow::kCall;
  } else {
    op.run = SystemCallHandler(target->name, site.arguments.size(), site.results.size());
    if (op.run == nullptr) return Unsupported(instruction, " of '" + target->name + "'");
  }
  kernel_.calls.push_back(std::move(site));
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
