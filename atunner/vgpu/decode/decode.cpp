// Instructions: their family decides how operands are read and which handler runs.
#include <algorithm>
#include <functional>

#include "atunner/vgpu/decode/decoders.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

enum class Family : uint8_t {
  kArithmetic,
  kVideo,
  kLogic,
  kCompare,
  kConvert,
  kSpecial,
  kMemory,
  kAtomic,
  kMulticast,
  kAsync,
  kWarp,
  kMatrix,
  kTensor,
  kWmma,
  kWgmma,
  kMove,
  kAddressSpace,
  kBarrier,
  kBranch,
  kExit,
  kReturn,
  kTrap,
  kTexture,
  kCall
};

/// One line of op.def.
struct Row {
  const char* opcode;
  OpClass op_class;
  Family family;
};

constexpr Row kTable[] = {
#define ATUNNER_PTX_OP(opcode, op_class, family) {opcode, OpClass::op_class, Family::k##family},
#include "atunner/vgpu/decode/op.def"
#undef ATUNNER_PTX_OP
};

const Row* FindRow(std::string_view opcode) {
  for (const Row& row : kTable) {
    if (row.opcode == opcode) return &row;
  }
  return nullptr;
}

bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kF64; }

OpClass MemoryClass(Space space) {
  switch (space) {
    case Space::kShared:
      return OpClass::kShared;
    case Space::kLocal:
      return OpClass::kLocal;
    case Space::kParam:
    case Space::kConst:
      return OpClass::kConstant;
    default:
      return OpClass::kGlobal;
  }
}

OpClass ArithmeticClass(bool special, const std::string& opcode, Type type) {
  if (type == Type::kF64) return OpClass::kFp64;
  if (type == Type::kF16 || type == Type::kF16x2 || type == Type::kBF16 || type == Type::kBF16x2)
    return OpClass::kFp16;
  if (special) return OpClass::kSpecial;
  if (type == Type::kF32) return opcode == "div" ? OpClass::kSpecial : OpClass::kFp32;
  const bool multiplies = opcode == "mul" || opcode == "mad" || opcode == "div" ||
                          opcode == "rem" || opcode == "dp4a";
  return multiplies ? OpClass::kMultiply : OpClass::kInteger;
}

/// Extensions between integers are moves or logic in hardware.
OpClass ConversionClass(const Instruction& instruction, Type type) {
  const bool floats = IsFloat(type) || type == Type::kF16 || type == Type::kBF16 ||
                      instruction.Has("f32") || instruction.Has("f64") || instruction.Has("f16");
  return floats ? OpClass::kConversion : OpClass::kInteger;
}

/// The class of an instruction by pipe. Opcodes that exist for several types are sorted by type.
OpClass ClassOf(const Row& row, const Instruction& instruction, Type type, Space space) {
  switch (row.family) {
    case Family::kArithmetic:
    case Family::kSpecial:
      return ArithmeticClass(row.family == Family::kSpecial, instruction.opcode, type);
    case Family::kMemory:
    case Family::kAtomic:
    case Family::kMulticast:
    case Family::kAsync:
      return MemoryClass(space);
    case Family::kConvert:
      return ConversionClass(instruction, type);
    default:
      return row.op_class;
  }
}

/// A special register, extended; old texts say that it has 16 bits.
bool ConvertsSpecial(const Instruction& i) {
  const auto unsigned_word = [](const std::string& type) { return type == "u32" || type == "u16"; };
  return i.opcode == "cvt" && i.operands.size() == 2 &&
         i.operands[1].kind == ptx::Operand::Kind::kSpecial && i.modifiers.size() == 2 &&
         unsigned_word(i.modifiers[1]) &&
         (i.modifiers[0].starts_with('u') || i.modifiers[0].starts_with('s'));
}

/// The address of a variable in the function's stack frame.
void FrameAddress(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* frame = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    if (op.width == 8)
      Lane<uint64_t>::Set(d, l, frame[l] + op.imm);
    else
      d[l] = frame[l] + static_cast<uint32_t>(op.imm);
  });
}

/// Moves halves of 128 bits, each stored as a 64-bit register; the list holds the destinations and
/// then the sources.
void MoveWide(BlockState& x, const Op& op, uint32_t mask) {
  const int32_t* list = x.kernel->lists.data() + op.list;
  uint64_t halves[2][kLanes];
  for (int h = 0; h < 2; ++h)
    ForLanes(mask, [&](int l) { halves[h][l] = Lane<uint64_t>::Get(x.Source(list[2 + h]), l); });
  for (int h = 0; h < 2; ++h)
    ForLanes(mask, [&](int l) { Lane<uint64_t>::Set(x.Slot(list[h]), l, halves[h][l]); });
}

Status DecodeWideMove(DecodeContext& c, const Instruction& instruction, Op& op) {
  const std::vector<int32_t> to = c.Halves(instruction.operands[0]);
  const std::vector<int32_t> from = c.Halves(instruction.operands[1]);
  if (to.empty() || from.empty()) return c.Unsupported(instruction);
  op.list = static_cast<uint32_t>(c.kernel().lists.size());
  op.list_size = 4;
  c.kernel().lists.insert(c.kernel().lists.end(), to.begin(), to.end());
  c.kernel().lists.insert(c.kernel().lists.end(), from.begin(), from.end());
  op.run = MoveWide;
  return {};
}

/// mov between a register and a vector of its parts.
Status DecodePackedMove(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const Operand& to = instruction.operands[0];
  const Operand& from = instruction.operands[1];
  const bool unpack = to.kind == Operand::Kind::kVector;
  const std::vector<Operand>& elements = unpack ? to.elements : from.elements;
  const auto bytes = static_cast<size_t>(ptx::BitsOf(form.type)) / 8;
  if (elements.empty() || bytes % elements.size() != 0 || bytes / elements.size() > 4)
    return c.Unsupported(instruction);
  op.width = static_cast<uint8_t>(bytes / elements.size());
  ATUNNER_RETURN_IF_ERROR(
      c.List(elements, op, instruction, unpack, op.width == 4 ? Type::kB32 : Type::kB16));
  if (unpack) {
    op.src[0] = c.Source(from, form.type);
    op.run = op.src[0] == kNoSlot ? nullptr : MoveUnpack;
  } else {
    op.dst = c.Destination(to);
    op.run = op.dst == kNoSlot ? nullptr : MovePack;
  }
  return {};
}

Status DecodeSpecialMove(DecodeContext& c, const Instruction& instruction, Op& op) {
  const std::string& name = instruction.operands[1].name;
  const auto special = FindSpecial(name);
  if (!special) return c.Unsupported(instruction, " of " + name);
  op.imm = *special;
  op.width = static_cast<uint8_t>(c.RegisterBits(instruction.operands[0].reg) / 8);
  if (name == "%envreg1" || name == "%envreg2") c.kernel().cooperative = true;
  if (name.starts_with("%reserved_smem")) c.kernel().reserved_shared = kReservedShared;
  if (ReadsTime(name)) op.flow = Flow::kReadsTime;
  op.run = ReadSpecial;
  return {};
}

/// mov of the address of a variable in the stack frame; false for other symbols.
bool DecodeFrameAddress(DecodeContext& c, const Form& form, Op& op) {
  const Operand& from = form.instruction->operands[1];
  Space space = Space::kGlobal;
  bool in_frame = false;
  const auto address = c.SymbolAddress(from.name, space, in_frame);
  if (!address || !in_frame) return false;
  op.imm = *address + from.bits;
  op.src[0] = c.frame_slot();
  op.width = static_cast<uint8_t>(ptx::BitsOf(form.type) / 8);
  op.run = FrameAddress;
  return true;
}

Status DecodeMove(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  if (instruction.operands.size() != 2) return c.Unsupported(instruction);
  if (form.type == Type::kB128) return DecodeWideMove(c, instruction, op);
  const Operand& to = instruction.operands[0];
  const Operand& from = instruction.operands[1];
  if (to.kind == Operand::Kind::kVector || from.kind == Operand::Kind::kVector)
    return DecodePackedMove(c, form, op);
  op.dst = c.Destination(to);
  if (op.dst == kNoSlot) return c.Unsupported(instruction);
  if (from.kind == Operand::Kind::kSpecial) return DecodeSpecialMove(c, instruction, op);
  if (from.kind == Operand::Kind::kSymbol && DecodeFrameAddress(c, form, op)) return {};
  op.src[0] = c.Source(from, form.type);
  if (op.src[0] != kNoSlot) return SetMove(op, ptx::BitsOf(form.type)), Status{};
  if (from.kind == Operand::Kind::kImmediate) return c.Unsupported(instruction, ": operand 2");
  const ptx::Function* const named = c.module().Find(from.name);
  const bool launches = named != nullptr && named->is_entry;
  return c.Unsupported(
      instruction, " of '" + from.name + (launches ? "': kernels launch no kernels here" : "'"));
}

/// cvt may read and write 64-bit registers as narrower types: bit 0 of the variant = the source is
/// one, bit 1 = the destination.
void MarkWideRegisters(const DecodeContext& c, const Form& form, Op& op) {
  const auto& operands = form.instruction->operands;
  const auto wide = [&](const Operand& operand, Type type) {
    return operand.kind == Operand::Kind::kRegister && c.RegisterBits(operand.reg) == 64 &&
           ptx::BitsOf(type) < 64;
  };
  op.variant = static_cast<uint8_t>((wide(operands[1], form.type) ? 1 : 0) |
                                    (wide(operands[0], form.from) ? 2 : 0));
}

size_t LeastOperands(const std::string& opcode) {
  if (opcode == "bfi") return 5;
  if (opcode == "bfe" || opcode == "mad") return 4;
  return opcode == "shl" || opcode == "shr" ? 3 : 2;
}

/// The handler of an instruction whose operands are plain slots.
Handler PlainHandler(DecodeContext& c, Family family, const Form& form, Op& op) {
  if (const Handler half = HalfHandler(form, op)) return half;
  switch (family) {
    case Family::kArithmetic:
      if (const Handler handler = FloatHandler(form, op)) return handler;
      return IntegerHandler(form, op);
    case Family::kVideo:
      return VideoHandler(form, op);
    case Family::kSpecial:
      return SpecialHandler(form, op);
    case Family::kLogic:
      return LogicHandler(form, op);
    default:
      MarkWideRegisters(c, form, op);
      return ConvertHandler(form, op);
  }
}

Status DecodePlain(DecodeContext& c, const Row& row, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const std::string& opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  if (ConvertsSpecial(instruction)) return DecodeMove(c, form, op);
  if (operands.size() < LeastOperands(opcode))
    return c.Unsupported(instruction, ": too few operands");
  ATUNNER_RETURN_IF_ERROR(c.Operands(form, op, form.type));
  if ((opcode == "prmt" || opcode == "bfe") && op.dst2 >= 0) return c.Unsupported(instruction);
  if (opcode == "lop3" && operands.size() == 6) op.src[3] = c.Source(operands[5], Type::kPred);
  if (form.type == Type::kPred && std::ranges::any_of(operands, &Operand::negated))
    return c.Unsupported(instruction, ": negated operand");
  ATUNNER_RETURN_IF_ERROR(c.Complete(instruction, op));
  op.run = PlainHandler(c, row.family, form, op);
  return {};
}

Status DecodeCompare(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  ATUNNER_RETURN_IF_ERROR(c.Operands(form, op, form.type));
  const auto& operands = instruction.operands;
  const bool compares = instruction.opcode == "set" || instruction.opcode == "setp";
  if (instruction.modifiers.empty()) return c.Unsupported(instruction);
  if (operands.size() < (compares ? 3u : 4u)) return c.Unsupported(instruction);
  uint8_t combination = 0;
  if (compares && operands.size() == 4) {
    combination = form.Has("and") ? 1 : form.Has("or") ? 2 : form.Has("xor") ? 3 : 0;
    if (combination == 0) return c.Unsupported(instruction);
    if (operands[3].negated) combination |= 0x80;
  }
  if (instruction.opcode == "selp") combination = operands[3].negated;
  if (compares) op.run = HalfHandler(form, op);
  if (op.run == nullptr) op.run = CompareHandler(form, op);
  op.variant = combination;
  return c.Complete(instruction, op);
}

Status ByFamily(DecodeContext& c, const Row& row, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  switch (row.family) {
    case Family::kArithmetic:
    case Family::kVideo:
    case Family::kSpecial:
    case Family::kLogic:
    case Family::kConvert:
      return DecodePlain(c, row, form, op);
    case Family::kCompare:
      return DecodeCompare(c, form, op);
    case Family::kMove:
      return DecodeMove(c, form, op);
    case Family::kAddressSpace:
      return DecodeAddressSpace(c, form, op);
    case Family::kMemory:
      return DecodeMemory(c, form, op);
    case Family::kAtomic:
      return DecodeAtomic(c, form, op);
    case Family::kMulticast:
      return DecodeMulticast(c, form, op);
    case Family::kAsync:
      return DecodeAsync(c, form, op);
    case Family::kWarp:
      return DecodeWarp(c, form, op);
    case Family::kMatrix:
      return DecodeMatrix(c, form, op);
    case Family::kTensor:
      return DecodeTensor(c, form, op);
    case Family::kWmma:
      return DecodeWmma(c, form, op);
    case Family::kWgmma:
      return DecodeWgmma(c, form, op);
    case Family::kTexture:
      return DecodeTexture(c, form, op);
    case Family::kBarrier:
      return DecodeBarrier(c, form, op);
    case Family::kBranch:
      return DecodeBranch(c, instruction, op);
    case Family::kExit:
      op.flow = Flow::kExit;
      return {};
    case Family::kReturn:
      return DecodeReturn(c, op);
    case Family::kTrap:
      op.flow = Flow::kTrap;
      return {};
    case Family::kCall:
      return DecodeCall(c, instruction, op);
  }
  return {};
}

/// The form of an instruction with its last two type modifiers.
Form FormOf(const Instruction& instruction) {
  Form form{&instruction};
  for (const std::string& modifier : instruction.modifiers) {
    if (const Type type = ptx::ParseType(modifier); type != Type::kNone) {
      form.from = form.type;
      form.type = type;
    }
  }
  return form;
}

/// True for a part of a register or a negated register, which only video instructions take.
bool IsPart(const Operand& operand) { return operand.minus || !operand.part.empty(); }

}  // namespace

Status DecodeInstruction(DecodeContext& c, const Instruction& instruction, Op& op) {
  const Row* row = FindRow(instruction.opcode);
  if (row == nullptr) return c.Unsupported(instruction);
  if (instruction.guard >= 0) {
    op.guard = c.SlotOf(instruction.guard);
    op.guard_negated = instruction.guard_negated;
  }
  const Form form = FormOf(instruction);
  if (row->family != Family::kVideo && std::ranges::any_of(instruction.operands, IsPart))
    return c.Unsupported(instruction, ": parts of registers");
  ATUNNER_RETURN_IF_ERROR(ByFamily(c, *row, form, op));
  op.op_class = ClassOf(*row, instruction, form.type, op.space);
  const bool handled = op.flow == Flow::kNone || op.flow == Flow::kCollective ||
                       op.flow == Flow::kMayYield || op.flow == Flow::kReadsTime ||
                       op.flow == Flow::kAligned;
  if (handled && op.run == nullptr) return c.Unsupported(instruction);
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
