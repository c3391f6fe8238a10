// Functions, operands and the plain instructions.
#include <algorithm>
#include <functional>

#include "atunner/vgpu/decoder.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Type;

constexpr uint32_t kRecursionStackBytes = 32 * 1024;

constexpr Row kTable[] = {
#define ATUNNER_PTX_OP(opcode, op_class, family) {opcode, OpClass::op_class, Family::k##family},
#include "atunner/vgpu/op.def"
#undef ATUNNER_PTX_OP
};

const Row* FindRow(std::string_view opcode) {
  for (const Row& row : kTable) {
    if (row.opcode == opcode) return &row;
  }
  return nullptr;
}

/// Special registers by code, in the order that ReadSpecial knows.
constexpr std::string_view kSpecialNames[] = {
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%clock",
    "%clock64",
    "%globaltimer",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%cluster_ctaid.x",
    "%cluster_ctaid.y",
    "%cluster_ctaid.z",
    "%gridid",
    "%clusterid.x",
    "%nclusterid.x",
    "%cluster_nctaid.x",
    "%globaltimer_lo",
    "%clusterid.y",
    "%clusterid.z",
    "%nclusterid.y",
    "%nclusterid.z",
    "%cluster_nctaid.y",
    "%cluster_nctaid.z",
    "%is_explicit_cluster",
    "%envreg1",
    "%envreg2",
    "%globaltimer_hi",
    "%clock_hi",
    "%warpsize",
};

bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kF64; }

/// The class by pipe: opcodes that serve several types are sorted by type.
OpClass ClassOf(const Row& row, const Instruction& instruction, Type type, Space space) {
  switch (row.family) {
    case Family::kArithmetic:
    case Family::kSpecial:
      if (type == Type::kF64) return OpClass::kFp64;
      if (type == Type::kF16 || type == Type::kF16x2 || type == Type::kBF16 || type == Type::kBF16x2)
        return OpClass::kFp16;
      if (row.family == Family::kSpecial) return OpClass::kSpecial;
      if (type == Type::kF32) return instruction.opcode == "div" ? OpClass::kSpecial : OpClass::kFp32;
      return instruction.opcode == "mul" || instruction.opcode == "mad" || instruction.opcode == "div" ||
                     instruction.opcode == "rem" || instruction.opcode == "dp4a"
                 ? OpClass::kMultiply
                 : OpClass::kInteger;
    case Family::kMemory:
    case Family::kAtomic:
    case Family::kAsync:
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
    case Family::kConvert:
      // Extensions between integers are moves or logic to the hardware.
      return IsFloat(type) || type == Type::kF16 || type == Type::kBF16 || instruction.Has("f32") ||
                     instruction.Has("f64") || instruction.Has("f16")
                 ? OpClass::kConversion
                 : OpClass::kInteger;
    default:
      return row.op_class;
  }
}

uint32_t AlignUp(uint64_t value, uint64_t align) { return static_cast<uint32_t>((value + align - 1) / align * align); }

}  // namespace

// ---- functions ----------------------------------------------------------------------------------------------------
Result<Kernel> Decoder::Run() {
  kernel_.function = &entry_;
  PlaceShared();
  CodeOf(entry_);
  for (size_t i = 0; i < work_.size(); ++i) ATUNNER_RETURN_IF_ERROR(DecodeFunction(static_cast<int>(i)));
  MarkRecursion();
  return std::move(kernel_);
}

/// Index of a function within the kernel; a new one is decoded in its turn.
int Decoder::CodeOf(const ptx::Function& function) {
  const auto index = static_cast<uint32_t>(&function - module_.functions().data());
  const auto [at, added] = kernel_.code_of_function.emplace(index, static_cast<int>(kernel_.code.size()));
  if (!added) return at->second;
  work_.push_back(&function);
  Code code;
  code.function = &function;
  uint64_t used = 0;
  const bool entry = kernel_.code.empty();
  const auto place = [&](const std::vector<ptx::Variable>& variables, std::vector<FramePart>& parts) {
    for (const ptx::Variable& variable : variables) {
      used = AlignUp(used, std::max(1u, variable.align));
      parts.push_back({static_cast<uint32_t>(used), static_cast<uint32_t>(variable.bytes)});
      used += variable.bytes;
    }
  };
  if (!entry) place(function.params, code.parameters);
  if (!entry) place(function.returns, code.results);
  code.frame_bytes = AlignUp(AlignUp(used, 16) + function.local_bytes, 16);
  code.first_slot = static_cast<int32_t>(kernel_.register_slots);
  for (const ptx::Register& reg : function.registers)
    kernel_.register_slots += ptx::BitsOf(reg.type) == 128 ? 4 : ptx::BitsOf(reg.type) == 64 ? 2 : 1;
  code.frame_slot = entry ? kNoSlot : static_cast<int32_t>(kernel_.register_slots++);
  code.slots = kernel_.register_slots - static_cast<uint32_t>(code.first_slot);
  kernel_.code.push_back(std::move(code));
  return at->second;
}

Status Decoder::DecodeFunction(int code) {
  code_ = code;
  function_ = work_[static_cast<size_t>(code)];
  kernel_.code[static_cast<size_t>(code)].first_op = static_cast<uint32_t>(kernel_.ops.size());
  frame_slot_ = kernel_.code[static_cast<size_t>(code)].frame_slot;
  slots_.clear();
  int32_t slot = kernel_.code[static_cast<size_t>(code)].first_slot;
  for (const ptx::Register& reg : function_->registers) {
    slots_.push_back(slot);
    slot += ptx::BitsOf(reg.type) == 128 ? 4 : ptx::BitsOf(reg.type) == 64 ? 2 : 1;
  }
  for (const Instruction& instruction : function_->body) {
    Op op;
    op.line = instruction.line;
    op.source_file = instruction.source_file;
    op.source_line = instruction.source_line;
    ATUNNER_RETURN_IF_ERROR(DecodeOne(instruction, op));
    kernel_.ops.push_back(op);
  }
  Op end;  // falling off the end returns
  end.op_class = OpClass::kControl;
  ATUNNER_RETURN_IF_ERROR(DecodeReturn(end));
  kernel_.ops.push_back(end);
  return {};
}

/// Shared variables: the kernel's own first, then those that functions declare for themselves, then the dynamic part.
void Decoder::PlaceShared() {
  uint64_t used = entry_.shared_bytes;
  const auto known = [&](const std::string& name) {
    return function_shared_.contains(name) ||
           std::ranges::any_of(entry_.shared, [&](const ptx::Variable& v) { return v.name == name; });
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

/// Which functions can be active twice in one thread, and how deep the stack can get.
void Decoder::MarkRecursion() {
  const size_t n = kernel_.code.size();
  std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
  for (const auto& [caller, callee] : edges_) {
    if (callee >= 0) reaches[static_cast<size_t>(caller)][static_cast<size_t>(callee)] = true;
    if (callee >= 0) continue;
    for (int taken : addressed_) reaches[static_cast<size_t>(caller)][static_cast<size_t>(taken)] = true;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; reaches[i][k] && j < n; ++j) reaches[i][j] = reaches[i][j] || reaches[k][j];
    }
  }
  bool any = false;
  for (size_t i = 0; i < n; ++i) {
    kernel_.code[i].recursive = reaches[i][i];
    any |= reaches[i][i];
    kernel_.local_bytes += kernel_.code[i].frame_bytes;
  }
  if (any) kernel_.local_bytes += kRecursionStackBytes;
}

// ---- operands -----------------------------------------------------------------------------------------------------
std::unexpected<Error> Decoder::Unsupported(const Instruction& instruction, std::string_view detail) const {
  return Fail(ErrorCode::kUnsupported,
              "the virtual GPU does not support '" + instruction.Mnemonic() + "'" + std::string(detail),
              "PTX line " + std::to_string(instruction.line) + " of " + function_->name);
}

int32_t Decoder::Constant(uint64_t bits, bool wide) {
  const auto key = std::pair(bits, wide);
  if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
  const auto slot = static_cast<int32_t>(~static_cast<int32_t>(kernel_.constants.size() / kLanes));
  if (wide) {
    for (int l = 0; l < kLanes; ++l) {
      kernel_.constants.push_back(static_cast<uint32_t>(bits));
      kernel_.constants.push_back(static_cast<uint32_t>(bits >> 32));
    }
  } else {
    kernel_.constants.insert(kernel_.constants.end(), kLanes, static_cast<uint32_t>(bits));
  }
  constants_[key] = slot;
  return slot;
}

std::optional<uint64_t> Decoder::SymbolAddress(const std::string& name, Space& space, bool& in_frame) {
  const auto in = [&](const std::vector<ptx::Variable>& list) -> const ptx::Variable* {
    const auto at = std::ranges::find(list, name, &ptx::Variable::name);
    return at == list.end() ? nullptr : &*at;
  };
  const Code& code = kernel_.code[static_cast<size_t>(code_)];
  in_frame = !IsEntry();
  space = IsEntry() ? Space::kParam : Space::kLocal;
  if (const ptx::Variable* at = in(function_->params))
    return IsEntry() ? at->offset : code.parameters[static_cast<size_t>(at - function_->params.data())].offset;
  if (const ptx::Variable* at = in(function_->returns); at && !IsEntry())
    return code.results[static_cast<size_t>(at - function_->returns.data())].offset;
  space = Space::kLocal;
  // Local variables lie behind parameters and results.
  if (const ptx::Variable* at = in(function_->local))
    return code.frame_bytes - AlignUp(function_->local_bytes, 16) + at->offset;
  in_frame = false;
  space = Space::kShared;
  if (const ptx::Variable* at = in(entry_.shared)) return at->offset;
  if (const auto at = function_shared_.find(name); at != function_shared_.end()) return at->second;
  if (std::ranges::find(function_->extern_shared, name) != function_->extern_shared.end())
    return kernel_.dynamic_shared_offset;
  space = Space::kGlobal;
  if (const auto at = symbols_.find(name); at != symbols_.end()) return at->second;
  return std::nullopt;
}

std::optional<uint64_t> Decoder::FunctionAddress(const std::string& name) {
  const ptx::Function* function = module_.Find(name);
  if (function == nullptr || function->is_entry) return std::nullopt;
  addressed_.push_back(CodeOf(*function));
  return kFunctionWindow | static_cast<uint64_t>(function - module_.functions().data());
}

int32_t Decoder::Source(const Operand& operand, Type type) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return slots_[static_cast<size_t>(operand.reg)];
    case Operand::Kind::kImmediate:
      return Constant(ImmediateBits(operand, type), ptx::BitsOf(type) == 64);
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

uint64_t Decoder::ImmediateBits(const Operand& operand, Type type) {
  if (type == Type::kPred) return operand.bits ? ~uint64_t{0} : 0;
  if (!operand.is_float) {
    if (type == Type::kF32) return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(operand.bits)));
    if (type == Type::kF64) return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(operand.bits)));
    return operand.bits;
  }
  const bool wide = ptx::BitsOf(type) == 64;
  if (operand.is_single)
    return wide && type == Type::kF64
               ? std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(operand.bits))))
               : operand.bits;
  return wide ? operand.bits : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
}

int32_t Decoder::Destination(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? slots_[static_cast<size_t>(operand.reg)] : kNoSlot;
}

Status Decoder::List(const std::vector<Operand>& elements, Op& op, const Instruction& instruction, bool destination,
                     Type type) {
  if (elements.size() > 255) return Unsupported(instruction, ": too many vector elements");
  op.list = static_cast<uint32_t>(kernel_.lists.size());
  op.list_size = static_cast<uint8_t>(elements.size());
  for (const Operand& element : elements) {
    const int32_t slot = destination ? Destination(element) : Source(element, type);
    if (slot == kNoSlot && !(destination && element.kind == Operand::Kind::kSink))
      return Unsupported(instruction, ": vector element");
    kernel_.lists.push_back(slot);
  }
  return {};
}

Status Decoder::Operands(const Form& form, Op& op, Type source_type) {
  const Instruction& instruction = *form.instruction;
  if (instruction.operands.empty() || instruction.operands.size() > 6) return Unsupported(instruction);
  const Operand& to = instruction.operands[0];
  op.dst = Destination(to);
  if (op.dst == kNoSlot && !to.second) return Unsupported(instruction, ": no destination register");
  op.dst2 = to.second ? slots_[static_cast<size_t>(*to.second)] : -1;
  for (size_t i = 1; i < instruction.operands.size() && i <= 4; ++i) {
    const int32_t slot = Source(instruction.operands[i], source_type);
    if (slot == kNoSlot) return Unsupported(instruction, ": operand " + std::to_string(i + 1));
    op.src[i - 1] = slot;
  }
  return {};
}

// ---- instructions -------------------------------------------------------------------------------------------------
Status Decoder::DecodeOne(const Instruction& instruction, Op& op) {
  const Row* row = FindRow(instruction.opcode);
  if (row == nullptr) return Unsupported(instruction);
  if (instruction.guard >= 0) {
    op.guard = slots_[static_cast<size_t>(instruction.guard)];
    op.guard_negated = instruction.guard_negated;
  }
  Form form{&instruction};
  for (const std::string& modifier : instruction.modifiers) {
    if (const Type type = ptx::ParseType(modifier); type != Type::kNone) {
      form.from = form.type;
      form.type = type;
    }
  }
  ATUNNER_RETURN_IF_ERROR(ByFamily(*row, form, op));
  op.op_class = ClassOf(*row, instruction, form.type, op.space);
  const bool handled = op.flow == Flow::kNone || op.flow == Flow::kCollective || op.flow == Flow::kPatient;
  if (handled && op.run == nullptr) return Unsupported(instruction);
  return {};
}

Status Decoder::ByFamily(const Row& row, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  switch (row.family) {
    case Family::kArithmetic:
    case Family::kVideo:
    case Family::kSpecial:
    case Family::kLogic:
    case Family::kConvert:
      return DecodePlain(row, form, op);
    case Family::kCompare:
      return DecodeCompare(form, op);
    case Family::kMove:
      return DecodeMove(form, op);
    case Family::kAddressSpace:
      return DecodeAddressSpace(form, op);
    case Family::kMemory:
      return DecodeMemory(form, op);
    case Family::kAtomic:
      return DecodeAtomic(form, op);
    case Family::kAsync:
      return DecodeAsync(form, op);
    case Family::kWarp:
      return DecodeWarp(form, op);
    case Family::kMatrix:
      return DecodeMatrix(form, op);
    case Family::kTensor:
      return DecodeTensor(form, op);
    case Family::kWmma:
      return DecodeWmma(form, op);
    case Family::kBarrier:
      return DecodeBarrier(form, op);
    case Family::kBranch:
      return DecodeBranch(instruction, op);
    case Family::kExit:
      op.flow = Flow::kExit;
      return {};
    case Family::kReturn:
      return DecodeReturn(op);
    case Family::kTrap:
      op.flow = Flow::kTrap;
      return {};
    case Family::kCall:
      return DecodeCall(instruction, op);
  }
  return {};
}

Status Decoder::DecodePlain(const Row& row, const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  Type type = form.type;
  ATUNNER_RETURN_IF_ERROR(Operands(form, op, type));
  // Shift amounts and bit positions are 32-bit whatever the type.
  const auto& operands = form.instruction->operands;
  if (opcode == "shl" || opcode == "shr") op.src[1] = Source(operands[2], Type::kU32);
  if (opcode == "bfe") {
    op.src[1] = Source(operands[2], Type::kU32);
    op.src[2] = Source(operands[3], Type::kU32);
  }
  if (opcode == "bfi") {
    op.src[2] = Source(operands[3], Type::kU32);
    op.src[3] = Source(operands[4], Type::kU32);
  }
  if ((opcode == "mad") && form.Has("wide"))
    op.src[2] = Source(operands[3], type == Type::kU16 || type == Type::kS16 ? Type::kU32 : Type::kU64);
  if (opcode == "lop3" || opcode == "prmt" || opcode == "bfe") {
    if (op.dst2 >= 0) return Unsupported(*form.instruction);
  }
  if (form.type == Type::kPred) {
    for (const Operand& operand : operands) {
      if (operand.negated) return Unsupported(*form.instruction, ": negated operand");
    }
  }
  op.run = HalfHandler(form, op);
  if (op.run) return {};
  switch (row.family) {
    case Family::kArithmetic:
      op.run = FloatHandler(form, op);
      if (op.run == nullptr) op.run = IntegerHandler(form, op);
      break;
    case Family::kVideo:
      op.run = VideoHandler(form, op);
      break;
    case Family::kSpecial:
      op.run = SpecialHandler(form, op);
      break;
    case Family::kLogic:
      op.run = LogicHandler(form, op);
      break;
    default:
      MarkWideRegisters(form, op);
      op.run = ConvertHandler(form, op);
  }
  return {};
}

/// cvt may read and write 64-bit registers as narrower types: bit 0 of the variant = the source is one, bit 1 = the
/// destination.
void Decoder::MarkWideRegisters(const Form& form, Op& op) const {
  const auto& operands = form.instruction->operands;
  const auto wide = [&](const Operand& operand, Type type) {
    return operand.kind == Operand::Kind::kRegister && RegisterBits(operand.reg) == 64 && ptx::BitsOf(type) < 64;
  };
  op.variant = static_cast<uint8_t>((wide(operands[1], form.type) ? 1 : 0) | (wide(operands[0], form.from) ? 2 : 0));
}

Status Decoder::DecodeCompare(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  ATUNNER_RETURN_IF_ERROR(Operands(form, op, form.type));
  const auto& operands = instruction.operands;
  const bool compares = instruction.opcode == "set" || instruction.opcode == "setp";
  if (operands.size() < (compares ? 3u : 4u)) return Unsupported(instruction);
  uint8_t combination = 0;
  if (compares && operands.size() == 4) {
    combination = form.Has("and") ? 1 : form.Has("or") ? 2 : form.Has("xor") ? 3 : 0;
    if (combination == 0) return Unsupported(instruction);
    op.src[2] = Source(operands[3], Type::kPred);
    if (operands[3].negated) combination |= 0x80;
  }
  if (instruction.opcode == "selp") {
    op.src[2] = Source(operands[3], Type::kPred);
    combination = operands[3].negated;
  }
  if (instruction.opcode == "slct") {
    op.src[0] = Source(operands[1], form.from);
    op.src[1] = Source(operands[2], form.from);
  }
  if (compares) op.run = HalfHandler(form, op);
  if (op.run == nullptr) op.run = CompareHandler(form, op);
  op.variant = combination;
  return {};
}

namespace {
/// The address of a variable in the function's stack frame.
void FrameAddress(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* frame = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    if (op.width == 8)
      Lane<uint64_t>::Set(d, l, frame[l] + op.imm);
    else
      d[l] = frame[l] + static_cast<uint32_t>(op.imm);
  });
}
}  // namespace

Status Decoder::DecodeMove(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  if (instruction.operands.size() != 2 || form.type == Type::kB128) return Unsupported(instruction);
  const Operand& to = instruction.operands[0];
  const Operand& from = instruction.operands[1];
  const int bytes = ptx::BitsOf(form.type) / 8;
  if (to.kind == Operand::Kind::kVector || from.kind == Operand::Kind::kVector) {
    const bool unpack = to.kind == Operand::Kind::kVector;
    const std::vector<Operand>& elements = unpack ? to.elements : from.elements;
    if (elements.empty() || bytes % static_cast<int>(elements.size()) != 0) return Unsupported(instruction);
    op.width = static_cast<uint8_t>(bytes / static_cast<int>(elements.size()));
    if (op.width > 4) return Unsupported(instruction);
    ATUNNER_RETURN_IF_ERROR(List(elements, op, instruction, unpack, op.width == 4 ? Type::kB32 : Type::kB16));
    if (unpack) {
      op.src[0] = Source(from, form.type);
      op.run = op.src[0] == kNoSlot ? nullptr : MoveUnpack;
    } else {
      op.dst = Destination(to);
      op.run = op.dst == kNoSlot ? nullptr : MovePack;
    }
    return {};
  }
  op.dst = Destination(to);
  if (op.dst == kNoSlot) return Unsupported(instruction);
  if (from.kind == Operand::Kind::kSpecial) {
    const auto at = std::ranges::find(kSpecialNames, from.name);
    if (at == std::end(kSpecialNames)) return Unsupported(instruction, " of " + from.name);
    op.imm = static_cast<uint64_t>(at - std::begin(kSpecialNames));
    op.width = static_cast<uint8_t>(RegisterBits(to.reg) / 8);
    if (from.name.starts_with("%envreg")) kernel_.cooperative = true;
    op.run = ReadSpecial;
    return {};
  }
  if (from.kind == Operand::Kind::kSymbol) {
    Space space = Space::kGlobal;
    bool in_frame = false;
    if (const auto address = SymbolAddress(from.name, space, in_frame); address && in_frame) {
      op.imm = *address + from.bits;
      op.src[0] = frame_slot_;
      op.width = static_cast<uint8_t>(bytes);
      op.run = FrameAddress;
      return {};
    }
  }
  op.src[0] = Source(from, form.type);
  if (op.src[0] == kNoSlot) return Unsupported(instruction, " of '" + from.name + "'");
  op.run = MoveHandler(ptx::BitsOf(form.type));
  return {};
}

Result<Kernel> Decode(const ptx::ValidModule& module, const ptx::Function& function,
                      const std::unordered_map<std::string, uint64_t>& symbols) {
  return Decoder(module, function, symbols).Run();
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
