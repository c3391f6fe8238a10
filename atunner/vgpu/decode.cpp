// From parsed PTX to operations: operands become slots, opcodes become handlers. What has no handler is refused here.
#include <algorithm>
#include <map>

#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

constexpr int32_t kNoSlot = INT32_MIN;

enum class Family : uint8_t {
  kArithmetic,
  kLogic,
  kCompare,
  kConvert,
  kSpecial,
  kMemory,
  kAtomic,
  kWarp,
  kTensor,
  kMove,
  kAddressSpace,
  kBarrier,
  kBranch,
  kExit,
  kTrap,
  kCall
};

struct Row {
  const char* opcode;
  OpClass op_class;
  Family family;
};
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

class Decoder {
 public:
  Decoder(const ptx::ValidModule& module, const ptx::Function& function,
          const std::unordered_map<std::string, uint64_t>& symbols)
      : module_(module), function_(function), symbols_(symbols) {}

  Result<Kernel> Run() {
    kernel_.function = &function_;
    kernel_.static_shared = function_.shared_bytes;
    const uint32_t align = function_.extern_shared_align;
    kernel_.dynamic_shared_offset = static_cast<uint32_t>((function_.shared_bytes + align - 1) / align * align);
    AssignSlots();
    for (const Instruction& instruction : function_.body) {
      Op op;
      op.line = instruction.line;
      op.source_file = instruction.source_file;
      op.source_line = instruction.source_line;
      ATUNNER_RETURN_IF_ERROR(DecodeOne(instruction, op));
      kernel_.ops.push_back(op);
    }
    Op end;  // falling off the end is an exit
    end.flow = Flow::kExit;
    end.op_class = OpClass::kControl;
    kernel_.ops.push_back(end);
    return std::move(kernel_);
  }

 private:
  void AssignSlots() {
    for (const ptx::Register& reg : function_.registers) {
      slots_.push_back(static_cast<int32_t>(kernel_.register_slots));
      kernel_.register_slots += ptx::BitsOf(reg.type) == 64 ? 2 : 1;
    }
  }

  std::unexpected<Error> Unsupported(const Instruction& instruction, std::string_view detail = "") const {
    return Fail(ErrorCode::kUnsupported,
                "the virtual GPU does not support '" + instruction.Mnemonic() + "'" + std::string(detail),
                "PTX line " + std::to_string(instruction.line) + " of " + function_.name);
  }

  int RegisterBits(int reg) const { return ptx::BitsOf(function_.registers[static_cast<size_t>(reg)].type); }

  int32_t Constant(uint64_t bits, bool wide) {
    const auto key = std::pair(bits, wide);
    if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
    const auto slot = static_cast<int32_t>(~static_cast<int32_t>(kernel_.constants.size() / kLanes));
    for (int l = 0; l < kLanes; ++l) {
      kernel_.constants.push_back(static_cast<uint32_t>(bits));
      if (wide) kernel_.constants.push_back(static_cast<uint32_t>(bits >> 32));
    }
    constants_[key] = slot;
    return slot;
  }

  std::optional<uint64_t> SymbolAddress(const std::string& name, Space* space = nullptr) const {
    const auto in = [&](const std::vector<ptx::Variable>& list, Space where) -> std::optional<uint64_t> {
      for (const ptx::Variable& variable : list) {
        if (variable.name != name) continue;
        if (space) *space = where;
        return variable.offset;
      }
      return std::nullopt;
    };
    if (auto at = in(function_.params, Space::kParam)) return at;
    if (auto at = in(function_.shared, Space::kShared)) return at;
    if (auto at = in(function_.local, Space::kLocal)) return at;
    if (std::ranges::find(function_.extern_shared, name) != function_.extern_shared.end()) {
      if (space) *space = Space::kShared;
      return kernel_.dynamic_shared_offset;
    }
    if (const auto at = symbols_.find(name); at != symbols_.end()) {
      if (space) *space = Space::kGlobal;
      return at->second;
    }
    return std::nullopt;
  }

  /// Slot of a source operand read as `type`; kNoSlot when it cannot be one.
  int32_t Source(const Operand& operand, Type type) {
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        return slots_[static_cast<size_t>(operand.reg)];
      case Operand::Kind::kImmediate:
        return Constant(ImmediateBits(operand, type), ptx::BitsOf(type) == 64);
      case Operand::Kind::kSymbol: {
        Space space = Space::kGlobal;
        const auto address = SymbolAddress(operand.name, &space);
        if (!address) return kNoSlot;
        return Constant(*address + operand.bits, ptx::BitsOf(type) == 64);
      }
      default:
        return kNoSlot;
    }
  }

  static uint64_t ImmediateBits(const Operand& operand, Type type) {
    if (type == Type::kPred) return operand.bits ? ~uint64_t{0} : 0;
    if (!operand.is_float) {
      if (type == Type::kF32) return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(operand.bits)));
      if (type == Type::kF64) return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(operand.bits)));
      return operand.bits;
    }
    const bool wide = ptx::BitsOf(type) == 64;
    if (operand.is_single)
      return wide && type == Type::kF64 ? std::bit_cast<uint64_t>(static_cast<double>(
                                              std::bit_cast<float>(static_cast<uint32_t>(operand.bits))))
                                        : operand.bits;
    return wide ? operand.bits : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
  }

  int32_t Destination(const Operand& operand) const {
    return operand.kind == Operand::Kind::kRegister ? slots_[static_cast<size_t>(operand.reg)] : kNoSlot;
  }

  Status DecodeOne(const Instruction& instruction, Op& op) {
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
    if (op.flow == Flow::kNone && op.run == nullptr) return Unsupported(instruction);
    return {};
  }

  Status ByFamily(const Row& row, const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    switch (row.family) {
      case Family::kArithmetic:
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
        return instruction.opcode == "cp" ? DecodeAsync(form, op) : DecodeMemory(form, op);
      case Family::kAtomic:
        return DecodeAtomic(form, op);
      case Family::kWarp:
        return DecodeWarp(form, op);
      case Family::kTensor:
        return DecodeTensor(form, op);
      case Family::kBarrier:
        return DecodeBarrier(form, op);
      case Family::kBranch:
        return DecodeBranch(instruction, op);
      case Family::kExit:
        op.flow = Flow::kExit;
        return {};
      case Family::kTrap:
        op.flow = Flow::kTrap;
        return {};
      case Family::kCall:
        return DecodeCall(instruction, op);
    }
    return {};
  }

  /// dst, up to four sources, all of one type except where the opcode says otherwise.
  Status Operands(const Form& form, Op& op, Type source_type) {
    const Instruction& instruction = *form.instruction;
    if (instruction.operands.empty() || instruction.operands.size() > 6) return Unsupported(instruction);
    op.dst = Destination(instruction.operands[0]);
    if (op.dst == kNoSlot) return Unsupported(instruction, ": no destination register");
    op.dst2 = instruction.operands[0].second ? slots_[static_cast<size_t>(*instruction.operands[0].second)] : -1;
    for (size_t i = 1; i < instruction.operands.size() && i <= 4; ++i) {
      const int32_t slot = Source(instruction.operands[i], source_type);
      if (slot == kNoSlot) return Unsupported(instruction, ": operand " + std::to_string(i + 1));
      op.src[i - 1] = slot;
    }
    return {};
  }

  Status DecodePlain(const Row& row, const Form& form, Op& op) {
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
        op.run = ArithmeticHandler(form, op);
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
  void MarkWideRegisters(const Form& form, Op& op) const {
    const auto& operands = form.instruction->operands;
    const auto wide = [&](const Operand& operand, Type type) {
      return operand.kind == Operand::Kind::kRegister && RegisterBits(operand.reg) == 64 && ptx::BitsOf(type) < 64;
    };
    op.variant = static_cast<uint8_t>((wide(operands[1], form.type) ? 1 : 0) | (wide(operands[0], form.from) ? 2 : 0));
  }

  Status DecodeCompare(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    ATUNNER_RETURN_IF_ERROR(Operands(form, op, form.type));
    const auto& operands = instruction.operands;
    if (instruction.opcode == "set" || instruction.opcode == "setp") {
      op.run = HalfHandler(form, op);
      if (op.run) return {};
    }
    if (instruction.opcode == "setp") {
      if (operands.size() == 4) {
        op.variant = form.Has("and") ? 1 : form.Has("or") ? 2 : form.Has("xor") ? 3 : 0;
        op.src[2] = Source(operands[3], Type::kPred);
        if (operands[3].negated) op.variant |= 0x80;
      }
    }
    if (instruction.opcode == "selp") {
      op.src[2] = Source(operands[3], Type::kPred);
      op.variant = operands[3].negated;
    }
    if (instruction.opcode == "slct") {
      op.src[0] = Source(operands[1], form.from);
      op.src[1] = Source(operands[2], form.from);
    }
    op.run = CompareHandler(form, op);
    return {};
  }

  Status DecodeMove(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    if (instruction.operands.size() != 2) return Unsupported(instruction);
    const Operand& to = instruction.operands[0];
    const Operand& from = instruction.operands[1];
    if (to.kind == Operand::Kind::kVector) {
      op.src[0] = Source(from, form.type);
      op.width = static_cast<uint8_t>(ptx::BitsOf(form.type) / 8 / static_cast<int>(to.elements.size()));
      ATUNNER_RETURN_IF_ERROR(List(to.elements, op, instruction, true));
      op.run = MoveUnpack;
      return {};
    }
    op.dst = Destination(to);
    if (op.dst == kNoSlot) return Unsupported(instruction);
    if (from.kind == Operand::Kind::kVector) {
      op.width = static_cast<uint8_t>(ptx::BitsOf(form.type) / 8 / static_cast<int>(from.elements.size()));
      ATUNNER_RETURN_IF_ERROR(List(from.elements, op, instruction, false, op.width == 4 ? Type::kB32 : Type::kB16));
      op.run = MovePack;
      return {};
    }
    if (from.kind == Operand::Kind::kSpecial) {
      const auto at = std::ranges::find(kSpecialNames, from.name);
      if (at == std::end(kSpecialNames)) return Unsupported(instruction, " of " + from.name);
      op.imm = static_cast<uint64_t>(at - std::begin(kSpecialNames));
      op.width = static_cast<uint8_t>(RegisterBits(to.reg) / 8);
      op.run = ReadSpecial;
      return {};
    }
    op.src[0] = Source(from, form.type);
    if (op.src[0] == kNoSlot) return Unsupported(instruction, " of '" + from.name + "'");
    op.run = MoveHandler(ptx::BitsOf(form.type));
    return {};
  }

  static void AddWindow(Exec& x, const Op& op, uint32_t mask) {
    uint32_t* d = x.Slot(op.dst);
    const uint32_t* a = x.Source(op.src[0]);
    ForLanes(mask, [&](int l) {
      Lane<uint64_t>::Set(d, l, (op.narrow_address ? a[l] : Lane<uint64_t>::Get(a, l)) | op.imm);
    });
  }
  static void DropWindow(Exec& x, const Op& op, uint32_t mask) {
    uint32_t* d = x.Slot(op.dst);
    const uint32_t* a = x.Source(op.src[0]);
    ForLanes(mask, [&](int l) {
      const uint64_t v = Lane<uint64_t>::Get(a, l) & ~kWindowMask;
      if (op.narrow_address)
        d[l] = static_cast<uint32_t>(v);
      else
        Lane<uint64_t>::Set(d, l, v);
    });
  }
  static void IsSpace(Exec& x, const Op& op, uint32_t mask) {
    const uint32_t* a = x.Source(op.src[0]);
    uint32_t bits = 0;
    ForLanes(mask, [&](int l) { bits |= ((Lane<uint64_t>::Get(a, l) & kWindowMask) == op.imm ? 1u : 0u) << l; });
    uint32_t* d = x.Slot(op.dst);
    *d = (*d & ~mask) | (bits & mask);
  }

  Status DecodeAddressSpace(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    if (instruction.operands.size() != 2) return Unsupported(instruction);
    op.dst = Destination(instruction.operands[0]);
    op.src[0] = Source(instruction.operands[1], Type::kU64);
    if (op.dst == kNoSlot || op.src[0] == kNoSlot) return Unsupported(instruction);
    const bool shared = form.Has("shared") || form.Has("shared::cta");
    const uint64_t window = shared              ? kSharedWindow
                            : form.Has("local") ? kLocalWindow
                            : form.Has("param") ? kParamWindow
                                                : 0;
    op.imm = window;
    if (instruction.opcode == "isspacep") {
      op.run = IsSpace;
    } else if (window == 0) {
      op.run = MoveHandler(ptx::BitsOf(form.type));
    } else {
      op.narrow_address =
          instruction.operands[1].kind == Operand::Kind::kRegister && RegisterBits(instruction.operands[1].reg) == 32;
      if (form.Has("to")) op.narrow_address = RegisterBits(instruction.operands[0].reg) == 32;
      op.run = form.Has("to") ? DropWindow : AddWindow;
    }
    return {};
  }

  Status List(const std::vector<Operand>& elements, Op& op, const Instruction& instruction, bool destination,
              Type type = Type::kB32) {
    if (kernel_.lists.size() + elements.size() > 65535)
      return Unsupported(instruction, ": too many vector operands in one kernel");
    op.list = static_cast<uint16_t>(kernel_.lists.size());
    op.list_size = static_cast<uint8_t>(elements.size());
    for (const Operand& element : elements) {
      const int32_t slot = destination ? Destination(element) : Source(element, type);
      if (slot == kNoSlot && !(destination && element.kind == Operand::Kind::kSink))
        return Unsupported(instruction, ": vector element");
      kernel_.lists.push_back(slot);
    }
    return {};
  }

  static Space SpaceOf(const Form& form) {
    if (form.Has("global")) return Space::kGlobal;
    if (form.Has("shared") || form.Has("shared::cta")) return Space::kShared;
    if (form.Has("local")) return Space::kLocal;
    if (form.Has("const")) return Space::kConst;
    if (form.Has("param") || form.Has("param::entry") || form.Has("param::func")) return Space::kParam;
    return Space::kGeneric;
  }

  /// Base register or absolute address into `base` and Op::imm.
  Status Address(const Operand& operand, const Instruction& instruction, Op& op, int32_t& base) {
    op.imm = operand.bits;
    base = kNoSlot;
    if (operand.kind != Operand::Kind::kAddress) return Unsupported(instruction, ": address expected");
    if (operand.reg >= 0) {
      base = slots_[static_cast<size_t>(operand.reg)];
      op.narrow_address = RegisterBits(operand.reg) == 32;
      return {};
    }
    if (operand.name.empty()) return {};
    Space space = Space::kGeneric;
    const auto address = SymbolAddress(operand.name, &space);
    if (!address) return Unsupported(instruction, ": unknown symbol '" + operand.name + "'");
    op.imm += *address;
    // .param variables of calls are kept on the stack; module constants lie in global memory.
    if (op.space == Space::kParam || op.space == Space::kGeneric) op.space = space;
    return {};
  }

  Status DecodeMemory(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    if (instruction.operands.empty()) return Unsupported(instruction);
    op.space = SpaceOf(form);
    op.relaxed = form.Has("volatile") || form.Has("relaxed") || form.Has("acquire") || form.Has("release");
    const bool store = instruction.opcode == "st";
    const bool load = instruction.opcode == "ld" || instruction.opcode == "ldu";
    if (!store && !load) {
      op.run = MemoryHandler(form, op);
      return {};
    }
    if (instruction.operands.size() < 2 || form.type == Type::kB128) return Unsupported(instruction);
    const Operand& address = instruction.operands[store ? 0 : 1];
    const Operand& value = instruction.operands[store ? 1 : 0];
    op.width = static_cast<uint8_t>(std::max(8, ptx::BitsOf(form.type)) / 8);
    op.sign_extend = form.type == Type::kS8 || form.type == Type::kS16 || form.type == Type::kS32;
    ATUNNER_RETURN_IF_ERROR(Address(address, instruction, op, op.src[0]));
    std::vector<Operand> single;
    if (value.kind != Operand::Kind::kVector) single.push_back(value);
    const std::vector<Operand>& elements = single.empty() ? value.elements : single;
    ATUNNER_RETURN_IF_ERROR(List(elements, op, instruction, load, form.type));
    // Bit 0: the registers have 64 bits.
    for (const Operand& element : elements) {
      if (element.kind == Operand::Kind::kRegister && RegisterBits(element.reg) == 64) op.variant |= 1;
    }
    op.run = MemoryHandler(form, op);
    return {};
  }

  Status DecodeAsync(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    op.run = MemoryHandler(form, op);
    if (op.run == nullptr) return {};
    op.space = Space::kGlobal;
    if (form.Has("commit_group")) return {};
    if (form.Has("wait_group") || form.Has("wait_all")) {
      op.imm = form.Has("wait_all") ? ~uint64_t{0} : instruction.operands.empty() ? 0 : instruction.operands[0].bits;
      return {};
    }
    if (instruction.operands.size() < 3) return Unsupported(instruction);
    Op source;
    ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[1], instruction, source, op.src[1]));
    if (op.src[1] == kNoSlot) return Unsupported(instruction);
    op.dst2 = static_cast<int32_t>(static_cast<int64_t>(source.imm));
    ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[0], instruction, op, op.src[0]));
    op.space = Space::kGlobal;
    op.width = static_cast<uint8_t>(instruction.operands[2].bits);
    op.src[2] = instruction.operands.size() > 3 && instruction.operands[3].kind == Operand::Kind::kRegister
                    ? Source(instruction.operands[3], Type::kU32)
                    : kNoSlot;
    if (instruction.operands.size() > 3 && instruction.operands[3].kind == Operand::Kind::kImmediate)
      op.src[2] = Constant(instruction.operands[3].bits, false);
    return {};
  }

  Status DecodeAtomic(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    const bool reduction = instruction.opcode == "red";
    const size_t first = reduction ? 0 : 1;
    if (instruction.operands.size() < first + 2) return Unsupported(instruction);
    op.space = SpaceOf(form);
    op.dst = reduction ? kNoSlot : Destination(instruction.operands[0]);
    ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[first], instruction, op, op.src[0]));
    op.src[1] = Source(instruction.operands[first + 1], form.type);
    op.src[2] =
        instruction.operands.size() > first + 2 ? Source(instruction.operands[first + 2], form.type) : op.src[1];
    if (op.src[1] == kNoSlot || op.src[2] == kNoSlot) return Unsupported(instruction);
    const uint64_t offset = op.imm;
    op.run = AtomicHandler(form, op);
    op.imm = offset;
    return {};
  }

  Status DecodeWarp(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    const std::string& opcode = instruction.opcode;
    if (opcode == "membar" || opcode == "fence" || opcode == "nanosleep" || opcode == "griddepcontrol") {
      op.run = WarpHandler(form, op);
      return {};
    }
    if (instruction.operands.empty()) return Unsupported(instruction);
    op.dst = Destination(instruction.operands[0]);
    op.dst2 = instruction.operands[0].second ? slots_[static_cast<size_t>(*instruction.operands[0].second)] : -1;
    for (size_t i = 1; i < instruction.operands.size() && i <= 4; ++i) {
      const bool predicate = opcode == "vote" && i == 1;
      Type type = predicate ? Type::kPred : Type::kB32;
      if (opcode == "match" && i == 1) type = form.type;
      op.src[i - 1] = Source(instruction.operands[i], type);
      if (op.src[i - 1] == kNoSlot) return Unsupported(instruction);
    }
    op.imm = opcode == "vote" && instruction.operands.size() > 1 && instruction.operands[1].negated;
    if (op.dst == kNoSlot && opcode != "elect") return Unsupported(instruction);
    if (opcode == "shfl" || opcode == "vote" || opcode == "match" || opcode == "redux") {
      op.flow = Flow::kCollective;
      op.target = opcode == "shfl" ? 3 : 1;  // the operand that names the lanes
    }
    op.run = WarpHandler(form, op);
    return {};
  }

  Status DecodeTensor(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    if (instruction.opcode == "ldmatrix") {
      if (instruction.operands.size() != 2 || instruction.operands[0].kind != Operand::Kind::kVector)
        return Unsupported(instruction);
      ATUNNER_RETURN_IF_ERROR(List(instruction.operands[0].elements, op, instruction, true));
      ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[1], instruction, op, op.src[0]));
      op.space = Space::kShared;
      if (op.src[0] == kNoSlot) op.src[0] = Constant(0, false), op.narrow_address = true;
      op.run = TensorHandler(form, op);
      return {};
    }
    if (instruction.operands.size() != 4) return Unsupported(instruction);
    std::vector<Operand> all;
    for (const Operand& operand : instruction.operands) {
      if (operand.kind == Operand::Kind::kVector)
        all.insert(all.end(), operand.elements.begin(), operand.elements.end());
      else
        all.push_back(operand);
    }
    ATUNNER_RETURN_IF_ERROR(List(all, op, instruction, false,
                                 form.type == Type::kF64   ? Type::kF64
                                 : form.type == Type::kF32 ? Type::kF32
                                                           : Type::kB32));
    op.run = TensorHandler(form, op);
    return {};
  }

  Status DecodeBarrier(const Form& form, Op& op) {
    const Instruction& instruction = *form.instruction;
    const auto& operands = instruction.operands;
    if (form.Has("warp")) {
      op.flow = Flow::kWarpSync;
      op.src[0] = operands.empty() ? Constant(~0u, false) : Source(operands[0], Type::kB32);
      return {};
    }
    if (form.Has("cluster")) return Unsupported(instruction);
    op.flow = Flow::kBarrier;
    const bool red = form.Has("red");
    const size_t first = red ? 1 : 0;
    if (operands.size() <= first) return Unsupported(instruction);
    op.src[0] = Source(operands[first], Type::kU32);
    const size_t count_at = first + 1;
    const bool has_count = operands.size() > count_at + (red ? 1 : 0);
    op.src[1] = has_count ? Source(operands[count_at], Type::kU32) : kNoSlot;
    op.variant = form.Has("arrive") ? 1 : red ? (form.Has("popc") ? 2 : form.Has("and") ? 3 : 4) : 0;
    if (red) {
      op.dst = Destination(operands[0]);
      op.src[2] = Source(operands.back(), Type::kPred);
      op.sign_extend = operands.back().negated;  // reused: the predicate is negated
    }
    op.relaxed = instruction.opcode == "barrier" && !form.Has("aligned");
    return {};
  }

  Status DecodeBranch(const Instruction& instruction, Op& op) {
    if (instruction.opcode == "brx") {
      const auto targets =
          function_.branch_targets.find(instruction.operands.size() == 2 ? instruction.operands[1].name : "");
      if (targets == function_.branch_targets.end()) return Unsupported(instruction);
      op.flow = Flow::kBranchIndexed;
      op.src[0] = Source(instruction.operands[0], Type::kU32);
      op.list = static_cast<uint16_t>(kernel_.lists.size());
      op.imm = targets->second.size();
      for (const std::string& label : targets->second) {
        const auto at = function_.labels.find(label);
        if (at == function_.labels.end()) return Unsupported(instruction, ": unknown label " + label);
        kernel_.lists.push_back(static_cast<int32_t>(at->second));
      }
      return {};
    }
    op.flow = Flow::kBranch;
    op.target = function_.labels.at(instruction.operands[0].name);
    return {};
  }

  Status DecodeCall(const Instruction& instruction, Op& op) {
    for (const Operand& operand : instruction.operands) {
      if (operand.name == "vprintf") {  // output of kernels is swallowed: a candidate may print for ever
        op.run = [](Exec&, const Op&, uint32_t) {};
        return {};
      }
      if (operand.name == "__assertfail") {
        op.flow = Flow::kTrap;
        return {};
      }
    }
    return Unsupported(instruction, " of a function that was not inlined");
  }

  [[maybe_unused]] const ptx::ValidModule& module_;
  const ptx::Function& function_;
  const std::unordered_map<std::string, uint64_t>& symbols_;
  Kernel kernel_;
  std::vector<int32_t> slots_;
  std::map<std::pair<uint64_t, bool>, int32_t> constants_;
};

}  // namespace

Result<Kernel> Decode(const ptx::ValidModule& module, const ptx::Function& function,
                      const std::unordered_map<std::string, uint64_t>& symbols) {
  return Decoder(module, function, symbols).Run();
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
