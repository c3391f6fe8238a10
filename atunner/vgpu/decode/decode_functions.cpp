// Functions of a kernel, their frames and registers; operands as slots.
#include <algorithm>
#include <functional>
#include <map>

#include "atunner/vgpu/analysis/body_flow.h"
#include "atunner/vgpu/decode/decoder.h"
#include "atunner/vgpu/decode/register_slots.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint64_t kMaxLocalBytes = 512 * 1024;  // of one thread, as on hardware
constexpr uint32_t kMaxRegisterSlots = 1u << 17;
constexpr uint32_t kRecursionStackBytes = 32 * 1024;
constexpr uint32_t kAllocaBytes = 16 * 1024;

uint32_t AlignUp(uint64_t value, uint64_t align) {
  return static_cast<uint32_t>((value + align - 1) / align * align);
}

}  // namespace

Result<Kernel> Decoder::Run() {
  kernel_.function = &entry_;
  PlaceShared();
  CodeOf(entry_);
  for (size_t i = 0; i < work_.size(); ++i)
    ATUNNER_RETURN_IF_ERROR(DecodeFunction(static_cast<int>(i)));
  MarkRecursion();
  MarkLive(kernel_, WordsOfRegisters());
  FindFlow(kernel_);
  return std::move(kernel_);
}

/// Index of a function within the kernel; a new one is decoded in its turn.
int Decoder::CodeOf(const ptx::Function& function) {
  const auto index = static_cast<uint32_t>(&function - module_.functions().data());
  const auto [at, added] = kernel_.code_of_function.emplace(index,
                                                            static_cast<int>(kernel_.code.size()));
  if (!added) return at->second;
  work_.push_back(&function);
  Code code;
  code.function = &function;
  uint64_t used = 0;
  const bool entry = kernel_.code.empty();
  const auto place = [&](const std::vector<ptx::Variable>& variables,
                         std::vector<FramePart>& parts) {
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
  // Registers of functions that may be active twice are saved one by one, so that none shares its
  // place.
  RegisterSlots slots = AssignSlots(function, code.first_slot, entry);
  kernel_.register_slots = static_cast<uint32_t>(slots.end);
  code.slot_of_register = std::move(slots.first);
  code.frame_slot = entry ? kNoSlot : static_cast<int32_t>(kernel_.register_slots++);
  code.slots = kernel_.register_slots - static_cast<uint32_t>(code.first_slot);
  kernel_.code.push_back(std::move(code));
  return at->second;
}

namespace {
/// `known`: address registers of the stretch of operations without flow so far, with the first
/// access by each. `op` is the last of `ops`.
void MarkKnownAddress(const ptx::Instruction& instruction, std::vector<Op>& ops,
                      std::map<int, size_t>& known) {
  Op& op = ops.back();
  if (op.flow != Flow::kNone) known.clear();
  const Use use = UseOf(instruction);
  if (IsAccess(op) && instruction.guard < 0 && use.addresses.size() == 1) {
    const auto [at, first] = known.emplace(use.addresses.front(), ops.size() - 1);
    op.address_known = !first;
    if (!first) ops[at->second].address_shared = true;
  }
  for (int written : use.writes) known.erase(written);
}
}  // namespace

Status Decoder::DecodeFunction(int code) {
  code_ = code;
  function_ = work_[static_cast<size_t>(code)];
  if (function_->local_bytes > kMaxLocalBytes || function_->param_bytes > kMaxLocalBytes ||
      kernel_.register_slots > kMaxRegisterSlots)
    return Fail(ErrorCode::kUnsupported,
                "the virtual GPU does not support so many registers or so much local memory",
                function_->name);
  kernel_.code[static_cast<size_t>(code)].first_op = static_cast<uint32_t>(kernel_.ops.size());
  frame_slot_ = kernel_.code[static_cast<size_t>(code)].frame_slot;
  slots_ = kernel_.code[static_cast<size_t>(code)].slot_of_register;
  std::map<int, size_t> known_addresses;
  for (const Instruction& instruction : function_->body) {
    Op op;
    ATUNNER_RETURN_IF_ERROR(DecodeOne(instruction, op));
    kernel_.ops.push_back(op);
    MarkKnownAddress(instruction, kernel_.ops, known_addresses);
    kernel_.places.push_back({instruction.line, instruction.source_file, instruction.source_line});
    kernel_.tracks.push_back(TrackOf(instruction, kernel_.track_registers, kernel_.track_list));
  }
  kernel_.track_registers += static_cast<uint32_t>(function_->registers.size());
  Op end;  // falling off the end returns
  end.op_class = OpClass::kControl;
  ATUNNER_RETURN_IF_ERROR(DecodeReturn(end));
  kernel_.ops.push_back(end);
  kernel_.places.emplace_back();
  kernel_.tracks.emplace_back();
  return {};
}

/// Shared variables: the kernel's own first, then those that functions declare for themselves, then
/// the dynamic part.
void Decoder::PlaceShared() {
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

std::vector<uint8_t> Decoder::WordsOfRegisters() const {
  std::vector<uint8_t> words;
  for (const ptx::Function* function : work_) {
    for (const ptx::Register& reg : function->registers) {
      const int bits = ptx::BitsOf(reg.type);
      // Addresses share a base in uniform registers: one register each, not two.
      const bool address = bits == 64 && reg.type != ptx::Type::kF64;
      words.push_back(static_cast<uint8_t>(bits == 1 ? 0 : address ? 1 : std::max(1, bits / 32)));
    }
  }
  return words;
}

/// Which functions can be active twice in one thread, and how deep the stack can get.
void Decoder::MarkRecursion() {
  const size_t n = kernel_.code.size();
  std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
  for (const auto& [caller, callee] : edges_) {
    if (callee >= 0) reaches[static_cast<size_t>(caller)][static_cast<size_t>(callee)] = true;
    if (callee >= 0) continue;
    for (int taken : addressed_)
      reaches[static_cast<size_t>(caller)][static_cast<size_t>(taken)] = true;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; reaches[i][k] && j < n; ++j)
        reaches[i][j] = reaches[i][j] || reaches[k][j];
    }
  }
  bool any = false;
  for (size_t i = 0; i < n; ++i) {
    kernel_.code[i].recursive = reaches[i][i];
    any |= reaches[i][i];
    kernel_.local_bytes += kernel_.code[i].frame_bytes;
  }
  if (any) kernel_.local_bytes += kRecursionStackBytes;
  const auto claims = [](const Code& code) {
    return std::ranges::any_of(code.function->body,
                               [](const Instruction& i) { return i.opcode == "alloca"; });
  };
  if (std::ranges::any_of(kernel_.code, claims))
    kernel_.local_bytes += kernel_.alloca_bytes = kAllocaBytes;
}

// ---- operands
// -----------------------------------------------------------------------------------------------------
std::unexpected<Error> Decoder::Unsupported(const Instruction& instruction,
                                            std::string_view detail) const {
  return Fail(
      ErrorCode::kUnsupported,
      "the virtual GPU does not support '" + instruction.Mnemonic() + "'" + std::string(detail),
      "PTX line " + std::to_string(instruction.line) + " of " + function_->name);
}

int32_t Decoder::Constant(uint64_t bits, bool wide) {
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

std::optional<uint64_t> Decoder::SymbolAddress(const std::string& name, Space& space,
                                               bool& in_frame) {
  const auto in = [&](const std::vector<ptx::Variable>& list) -> const ptx::Variable* {
    const auto at = std::ranges::find(list, name, &ptx::Variable::name);
    return at == list.end() ? nullptr : &*at;
  };
  const Code& code = kernel_.code[static_cast<size_t>(code_)];
  in_frame = !IsEntry();
  space = IsEntry() ? Space::kParam : Space::kLocal;
  if (const ptx::Variable* at = in(function_->params))
    return IsEntry() ? at->offset
                     : code.parameters[static_cast<size_t>(at - function_->params.data())].offset;
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

/// Whether a constant is one of the type, as the assembler sees it: integers are no floats, and
/// only untyped bits take what is spelled as bits.
bool Decoder::IsOf(const Operand& constant, Type type) {
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

int32_t Decoder::Source(const Operand& operand, Type type) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return slots_[static_cast<size_t>(operand.reg)];
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

uint64_t Decoder::ImmediateBits(const Operand& operand, Type type) {
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

int32_t Decoder::Destination(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? slots_[static_cast<size_t>(operand.reg)]
                                                  : kNoSlot;
}

Status Decoder::List(const std::vector<Operand>& elements, Op& op, const Instruction& instruction,
                     bool destination, Type type) {
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

bool Decoder::Writable(const Op& op, size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (i >= op.list_size || kernel_.lists[op.list + i] < 0) return false;
  }
  return true;
}

Status Decoder::Complete(const Instruction& instruction, const Op& op) const {
  const bool sources = std::ranges::find(op.src, kNoSlot) == op.src.end();
  return sources && (op.dst >= 0 || op.dst2 >= 0) ? Status{}
                                                  : Status(Unsupported(instruction, ": operands"));
}

namespace {
/// The type of operand `i` where it is not that of the others.
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
}  // namespace

Status Decoder::Operands(const Form& form, Op& op, Type source_type) {
  const Instruction& instruction = *form.instruction;
  if (instruction.operands.empty() || instruction.operands.size() > 6)
    return Unsupported(instruction);
  const Operand& to = instruction.operands[0];
  op.dst = Destination(to);
  if (op.dst == kNoSlot && !to.second) return Unsupported(instruction, ": no destination register");
  op.dst2 = to.second ? slots_[static_cast<size_t>(*to.second)] : -1;
  for (size_t i = 1; i < instruction.operands.size() && i <= 4; ++i) {
    const int32_t slot = Source(instruction.operands[i], OperandType(form, i, source_type));
    if (slot == kNoSlot) return Unsupported(instruction, ": operand " + std::to_string(i + 1));
    op.src[i - 1] = slot;
  }
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
