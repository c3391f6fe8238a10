// Matrix fragments and tensor core instructions.
#include <algorithm>

#include "atunner/vgpu/decode/decoders.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

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
Status DecodeMatrix(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  if (instruction.operands.size() != 2) return c.Unsupported(instruction);
  op.run = MatrixHandler(form, op);
  if (instruction.opcode == "movmatrix") {
    op.dst = c.Destination(instruction.operands[0]);
    op.src[0] = c.Source(instruction.operands[1], Type::kB32);
    return op.dst == kNoSlot || op.src[0] == kNoSlot ? Status(c.Unsupported(instruction))
                                                     : Status{};
  }
  const bool load = instruction.opcode == "ldmatrix";
  const Operand& registers = instruction.operands[load ? 0 : 1];
  const std::vector<Operand> list = registers.kind == Operand::Kind::kVector
                                        ? registers.elements
                                        : std::vector<Operand>{registers};
  const uint8_t variant = op.variant;
  ATUNNER_RETURN_IF_ERROR(c.List(list, op, instruction, load));
  ATUNNER_RETURN_IF_ERROR(
      c.Address(instruction.operands[load ? 1 : 0], instruction, op, op.src[0]));
  op.space = Space::kShared;
  op.variant = variant;
  if (op.src[0] == kNoSlot) op.src[0] = c.Constant(0, false), op.narrow_address = true;
  const size_t matrices = form.Has("x4") ? 4 : form.Has("x2") ? 2 : 1;
  return list.size() == matrices ? Status{} : Status(c.Unsupported(instruction));
}

/// mma d, a, b, c: all registers in one list.
Status DecodeTensor(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const bool sparse = form.Has("sp") || form.Has("sp::ordered_metadata");
  if (instruction.operands.size() != (sparse ? 6 : 4)) return c.Unsupported(instruction);
  op.run = TensorHandler(form, op);
  if (op.run == nullptr) return {};
  const uint8_t variant = op.variant;
  // A sparse product's last operand is a number that the handler has read.
  const std::vector<Operand> all = Flatten(
      {instruction.operands.begin(), instruction.operands.begin() + (sparse ? 5 : 4)});
  const bool wide = form.type == Type::kF64;
  ATUNNER_RETURN_IF_ERROR(c.List(all, op, instruction, false,
                                 wide                      ? Type::kF64
                                 : form.type == Type::kF32 ? Type::kF32
                                                           : Type::kB32));
  op.variant = variant;
  const bool fits = all.size() == op.imm &&
                    c.Writable(op, Flatten({instruction.operands[0]}).size());
  return fits ? Status{} : Status(c.Unsupported(instruction, ": registers"));
}

/// wmma.load r, [p], stride; wmma.store [p], r, stride; wmma.mma d, a, b, c. The shape is packed in
/// `target`.
Status DecodeWmma(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = WmmaHandler(form, op);
  if (op.run == nullptr) return {};
  const uint32_t options = op.target;
  const bool wide = form.Has("f64");
  if (form.Has("mma")) {
    if (operands.size() != 4) return c.Unsupported(instruction);
    ATUNNER_RETURN_IF_ERROR(
        c.List(Flatten(operands), op, instruction, false, wide ? Type::kF64 : Type::kB32));
    return c.Writable(op, operands[0].elements.size()) ? Status{}
                                                       : Status(c.Unsupported(instruction));
  }
  const bool load = form.Has("load");
  if (operands.size() < 2) return c.Unsupported(instruction);
  op.space = c.SpaceOf(form);
  ATUNNER_RETURN_IF_ERROR(c.Address(operands[load ? 1 : 0], instruction, op, op.src[0]));
  op.src[1] = operands.size() > 2 ? c.Source(operands[2], Type::kU32) : kNoSlot;
  if (operands.size() > 2 && op.src[1] == kNoSlot) return c.Unsupported(instruction);
  op.target = options;
  return c.List(Flatten({operands[load ? 0 : 1]}), op, instruction, load,
                wide ? Type::kF64 : Type::kB32);
}

/// wgmma.mma_async d, a, b, scale-d, …: registers of D and of A in one list, descriptors in src. Of
/// a sparse A, metadata and selector stand before the scale.
Status DecodeWgmma(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = WgmmaHandler(form, op);
  if (op.run == nullptr) return {};
  if (form.Has("wait_group")) {
    if (operands.size() != 1 || operands[0].kind != Operand::Kind::kImmediate)
      return c.Unsupported(instruction);
    op.imm = operands[0].bits;
  }
  if (!form.Has("mma_async")) return {};
  const size_t accumulators = op.list_size;
  const bool in_registers = operands[1].kind == Operand::Kind::kVector;
  if (operands[0].elements.size() != accumulators ||
      (in_registers && operands[1].elements.size() != 4))
    return c.Unsupported(instruction, ": registers");
  std::vector<Operand> registers = operands[0].elements;
  if (in_registers)
    registers.insert(registers.end(), operands[1].elements.begin(), operands[1].elements.end());
  ATUNNER_RETURN_IF_ERROR(c.List(registers, op, instruction, false));
  if (!c.Writable(op, accumulators)) return c.Unsupported(instruction, ": registers");
  op.width = in_registers ? 4 : 0;  // of the list, registers that are only read
  op.src[0] = in_registers ? c.Constant(0, true) : c.Source(operands[1], Type::kB64);
  op.src[1] = c.Source(operands[2], Type::kB64);
  const bool sparse = form.Has("sp");
  const Operand& scale = operands[sparse ? 5 : 3];
  op.src[2] = c.Source(scale, Type::kPred);
  op.sign_extend = scale.negated;  // reused: the predicate is negated
  if (sparse) op.src[3] = c.Source(operands[3], Type::kB32);
  const bool found = std::ranges::find(op.src, kNoSlot) == op.src.end();
  return found ? Status{} : Status(c.Unsupported(instruction));
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
