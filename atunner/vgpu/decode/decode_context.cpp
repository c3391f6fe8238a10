#include "atunner/vgpu/decode/decode_context.h"

#include <algorithm>

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Operand;
using ptx::Type;

const ptx::Variable* FindVariable(const std::vector<ptx::Variable>& list, const std::string& name) {
  const auto at = std::ranges::find(list, name, &ptx::Variable::name);
  return at == list.end() ? nullptr : &*at;
}

/// True if the assembler takes a constant for an operand of the type: integers are not floats, and
/// only untyped operands take constants that are spelled as bits.
bool IsOf(const Operand& constant, Type type) {
  switch (type) {
    case Type::kF32:
    case Type::kF64:
      return constant.is_float;
    case Type::kB32:
      return !constant.is_float || constant.is_single;
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
    case Type::kB16:
      return !constant.is_float;
    default:
      return true;
  }
}

uint64_t ImmediateBits(const Operand& operand, Type type) {
  if (type == Type::kPred) return operand.bits ? ~uint64_t{0} : 0;
  if (!operand.is_float) return operand.bits;
  const bool wide = ptx::BitsOf(type) == 64;
  if (operand.is_single)
    return wide && type == Type::kF64
               ? std::bit_cast<uint64_t>(
                     static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(operand.bits))))
               : operand.bits;
  return wide ? operand.bits
              : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
}

/// The type of operand `i`, which may differ from the type of the others.
ptx::Type OperandType(const Form& form, size_t i, ptx::Type type) {
  using ptx::Type;
  const std::string& opcode = form.instruction->opcode;
  const bool compares = opcode == "set" || opcode == "setp" || opcode == "selp";
  if (compares && i == 3) return Type::kPred;
  if (opcode == "slct") return i == 3 ? type : form.from;
  // Shift amounts and bit positions are 32-bit whatever the type.
  const bool shifts = opcode == "shl" || opcode == "shr";
  if ((i >= 2 && (shifts || opcode == "bfe")) || (i >= 3 && opcode == "bfi")) return Type::kU32;
  if (i == 3 && opcode == "mad" && form.Has("wide"))
    return type == Type::kU16 || type == Type::kS16 ? Type::kU32 : Type::kU64;
  return type;
}

/// Instructions of one type whose operands all have that type, but for those that OperandType
/// knows.
bool IsUniform(const Form& form) {
  constexpr std::string_view kUniform[] = {"add", "sub",  "mul",   "mad", "fma",  "div", "rem",
                                           "abs", "neg",  "min",   "max", "sqrt", "rcp", "ex2",
                                           "lg2", "sin",  "cos",   "and", "or",   "xor", "not",
                                           "shl", "tanh", "rsqrt", "shr", "setp", "selp"};
  return form.from == ptx::Type::kNone &&
         std::ranges::find(kUniform, form.instruction->opcode) != std::end(kUniform);
}
/// The type of the result; kNone = not known here.
ptx::Type ResultType(const Form& form) {
  return form.Has("wide") || form.instruction->opcode == "setp" ? ptx::Type::kNone : form.type;
}
bool IsFloat(ptx::Type type) { return type == ptx::Type::kF32 || type == ptx::Type::kF64; }
bool IsInteger(ptx::Type type) { return type >= ptx::Type::kU8 && type <= ptx::Type::kS64; }

}  // namespace

DecodeContext::DecodeContext(const ptx::ValidModule& module, const ptx::Function& entry,
                             const Symbols& symbols)
    : module_(module), entry_(entry), symbols_(symbols), functions_(module, kernel_) {
  kernel_.function = &entry_;
  PlaceShared();
  functions_.CodeOf(entry_);
}

void DecodeContext::EnterFunction(int code) {
  code_ = code;
  function_ = &functions_[code];
}

void DecodeContext::AppendList(Op& op, const std::vector<int32_t>& slots) {
  if (op.list_size == 0) op.list = static_cast<uint32_t>(kernel_.lists.size());
  op.list_size = static_cast<uint8_t>(op.list_size + slots.size());
  kernel_.lists.insert(kernel_.lists.end(), slots.begin(), slots.end());
}

void DecodeContext::PlaceShared() {
  uint64_t used = entry_.shared_bytes;
  const auto known = [&](const std::string& name) {
    return function_shared_.contains(name) ||
           std::ranges::any_of(entry_.shared,
                               [&](const ptx::Variable& v) { return v.name == name; });
  };
  for (const ptx::Function& function : module_.functions()) {
    if (function.is_entry) continue;
    for (const ptx::Variable& variable : function.shared) {
      if (known(variable.name)) continue;
      used = AlignUp(used, std::max(1u, variable.align));
      function_shared_[variable.name] = used;
      used += variable.bytes;
    }
  }
  kernel_.static_shared = used;
  kernel_.dynamic_shared_offset = AlignUp(used, entry_.extern_shared_align);
}

std::unexpected<Error> DecodeContext::Unsupported(const ptx::Instruction& instruction,
                                                  std::string_view detail) const {
  return Fail(
      ErrorCode::kUnsupported,
      "the virtual GPU does not support '" + instruction.Mnemonic() + "'" + std::string(detail),
      "PTX line " + std::to_string(instruction.line) + " of " + function_->name);
}

int32_t DecodeContext::Constant(uint64_t bits, bool wide) {
  const auto key = std::pair(bits, wide);
  if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
  SlotLanes value;
  for (size_t l = 0; l < kLanes; ++l)
    value.lanes[l] = static_cast<uint32_t>(wide && l % 2 == 1 ? bits >> 32 : bits);
  kernel_.constants.insert(kernel_.constants.end(), wide ? 2 : 1, value);
  const int32_t slot = -static_cast<int32_t>(kernel_.constants.size());
  constants_[key] = slot;
  return slot;
}

std::optional<uint64_t> DecodeContext::FrameOffset(const std::string& name) const {
  const Code& code = CurrentCode();
  if (const ptx::Variable* at = FindVariable(function_->params, name); at && !IsEntry())
    return code.parameters[static_cast<size_t>(at - function_->params.data())].offset;
  if (const ptx::Variable* at = FindVariable(function_->returns, name); at && !IsEntry())
    return code.results[static_cast<size_t>(at - function_->returns.data())].offset;
  return std::nullopt;
}

std::optional<uint64_t> DecodeContext::SymbolAddress(const std::string& name, Space& space,
                                                     bool& in_frame) {
  in_frame = !IsEntry();
  space = IsEntry() ? Space::kParam : Space::kLocal;
  if (const ptx::Variable* at = FindVariable(function_->params, name); at && IsEntry())
    return at->offset;
  if (const auto offset = FrameOffset(name)) return offset;
  space = Space::kLocal;
  // Local variables follow the parameters and results.
  if (const ptx::Variable* at = FindVariable(function_->local, name))
    return CurrentCode().frame_bytes - AlignUp(function_->local_bytes, 16) + at->offset;
  in_frame = false;
  space = Space::kShared;
  if (const ptx::Variable* at = FindVariable(entry_.shared, name)) return at->offset;
  if (const auto at = function_shared_.find(name); at != function_shared_.end()) return at->second;
  if (std::ranges::find(function_->extern_shared, name) != function_->extern_shared.end())
    return kernel_.dynamic_shared_offset;
  space = Space::kGlobal;
  if (const auto at = symbols_.find(name); at != symbols_.end()) return at->second;
  return std::nullopt;
}

std::optional<uint64_t> DecodeContext::FunctionAddress(const std::string& name) {
  const ptx::Function* function = module_.Find(name);
  if (function == nullptr || function->is_entry) return std::nullopt;
  functions_.AddAddressTaken(functions_.CodeOf(*function));
  return kFunctionWindow | static_cast<uint64_t>(function - module_.functions().data());
}

int32_t DecodeContext::Source(const Operand& operand, Type type) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return SlotOf(operand.reg);
    case Operand::Kind::kImmediate:
      return IsOf(operand, type) ? Constant(ImmediateBits(operand, type), ptx::BitsOf(type) == 64)
                                 : kNoSlot;
    case Operand::Kind::kSymbol: {
      Space space = Space::kGlobal;
      bool in_frame = false;
      auto address = SymbolAddress(operand.name, space, in_frame);
      if (in_frame) return kNoSlot;
      if (!address) address = FunctionAddress(operand.name);
      return address ? Constant(*address + operand.bits, ptx::BitsOf(type) == 64) : kNoSlot;
    }
    default:
      return kNoSlot;
  }
}

int32_t DecodeContext::Destination(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? SlotOf(operand.reg) : kNoSlot;
}

Status DecodeContext::List(const std::vector<Operand>& elements, Op& op,
                           const ptx::Instruction& instruction, bool destination, Type type) {
  if (elements.size() > 255) return Unsupported(instruction, ": too many vector elements");
  op.list = static_cast<uint32_t>(kernel_.lists.size());
  op.list_size = static_cast<uint8_t>(elements.size());
  op.list_written = destination;
  for (const Operand& element : elements) {
    const int32_t slot = destination ? Destination(element) : Source(element, type);
    if (slot == kNoSlot && !(destination && element.kind == Operand::Kind::kSink))
      return Unsupported(instruction, ": vector element");
    kernel_.lists.push_back(slot);
  }
  return {};
}

bool DecodeContext::Writable(const Op& op, size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (i >= op.list_size || kernel_.lists[op.list + i] < 0) return false;
  }
  return true;
}

Status DecodeContext::Complete(const ptx::Instruction& instruction, const Op& op) const {
  const bool sources = std::ranges::find(op.src, kNoSlot) == op.src.end();
  return sources && (op.dst >= 0 || op.dst2 >= 0) ? Status{}
                                                  : Status(Unsupported(instruction, ": operands"));
}

Status DecodeContext::CheckRegisters(const Form& form) const {
  const ptx::Instruction& instruction = *form.instruction;
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    const Type type = i > 0 ? OperandType(form, i, form.type) : ResultType(form);
    if (operand.kind != Operand::Kind::kRegister || ptx::BitsOf(type) < 16) continue;
    const ptx::Register& reg = function_->registers[static_cast<size_t>(operand.reg)];
    const bool fits = ptx::BitsOf(reg.type) == ptx::BitsOf(type) &&
                      !(IsInteger(reg.type) && IsFloat(type)) &&
                      !(IsFloat(reg.type) && IsInteger(type));
    if (fits) continue;
    return Invalid("operand " + std::to_string(i + 1) + " of '" + instruction.Mnemonic() + "', " +
                       reg.name + ", is a register of another type",
                   "PTX line " + std::to_string(instruction.line) + " of " + function_->name);
  }
  return {};
}

Status DecodeContext::Operands(const Form& form, Op& op, Type source_type) {
  const ptx::Instruction& instruction = *form.instruction;
  if (instruction.operands.empty() || instruction.operands.size() > 6)
    return Unsupported(instruction);
  if (IsUniform(form)) ATUNNER_RETURN_IF_ERROR(CheckRegisters(form));
  const Operand& to = instruction.operands[0];
  op.dst = Destination(to);
  if (op.dst == kNoSlot && !to.second) return Unsupported(instruction, ": no destination register");
  op.dst2 = to.second ? SlotOf(*to.second) : -1;
  for (size_t i = 1; i < instruction.operands.size() && i <= 4; ++i) {
    const int32_t slot = Source(instruction.operands[i], OperandType(form, i, source_type));
    if (slot == kNoSlot) return Unsupported(instruction, ": operand " + std::to_string(i + 1));
    op.src[i - 1] = slot;
  }
  return {};
}

std::vector<int32_t> DecodeContext::Halves(const Operand& operand) const {
  const auto bits_of = [&](const Operand& part) {
    return part.kind == Operand::Kind::kRegister ? RegisterBits(part.reg) : 0;
  };
  if (bits_of(operand) == 128) return {Destination(operand), Destination(operand) + 2};
  std::vector<int32_t> halves;
  for (const Operand& part : operand.elements) {
    if (bits_of(part) == 64) halves.push_back(Destination(part));
  }
  return halves.size() == 2 && operand.elements.size() == 2 ? halves : std::vector<int32_t>{};
}

Space DecodeContext::SpaceOf(const Form& form) const {
  if (form.Has("global")) return Space::kGlobal;
  if (form.Has("shared") || form.Has("shared::cta") || form.Has("shared::cluster"))
    return Space::kShared;
  if (form.Has("local")) return Space::kLocal;
  if (form.Has("const")) return Space::kConst;
  const bool param = form.Has("param") || form.Has("param::entry") || form.Has("param::func");
  // parameters of functions are in their frame
  if (param) return IsEntry() ? Space::kParam : Space::kLocal;
  return Space::kGeneric;
}

Status DecodeContext::Address(const Operand& operand, const ptx::Instruction& instruction, Op& op,
                              int32_t& base) {
  op.imm = operand.bits;
  base = kNoSlot;
  if (operand.kind != Operand::Kind::kAddress)
    return Unsupported(instruction, ": address expected");
  if (operand.reg >= 0) {
    base = SlotOf(operand.reg);
    op.narrow_address = RegisterBits(operand.reg) == 32;
    return {};
  }
  if (operand.name.empty()) return {};
  Space space = Space::kGeneric;
  bool in_frame = false;
  const auto address = SymbolAddress(operand.name, space, in_frame);
  if (!address) return Unsupported(instruction, ": unknown symbol '" + operand.name + "'");
  op.imm += *address;
  if (in_frame) {
    base = frame_slot();
    op.narrow_address = true;
  }
  // .param variables of calls are on the stack; module constants are in global memory.
  if (op.space == Space::kParam || op.space == Space::kGeneric) op.space = space;
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
