// From parsed PTX to operations: operands become slots, opcodes become handlers. What has no
// handler is refused here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

struct TextureOptions;
constexpr int32_t kNoSlot = INT32_MIN;

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

class Decoder {
 public:
  Decoder(const ptx::ValidModule& module, const ptx::Function& entry,
          const std::unordered_map<std::string, uint64_t>& symbols)
      : module_(module), entry_(entry), symbols_(symbols) {}

  Result<Kernel> Run();

 private:
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;
  using Type = ptx::Type;

  // decode.cpp: functions
  int CodeOf(const ptx::Function& function);
  Status DecodeFunction(int code);
  void PlaceShared();
  void MarkRecursion();
  /// The machine's registers that each one takes: none for predicates, two for 64 bits.
  std::vector<uint8_t> WordsOfRegisters() const;
  bool IsEntry() const { return code_ == 0; }

  // decode.cpp: operands
  /// Every source and the destination of a handler that takes them all as slots.
  Status Complete(const Instruction& instruction, const Op& op) const;
  std::unexpected<Error> Unsupported(const Instruction& instruction,
                                     std::string_view detail = "") const;
  int RegisterBits(int reg) const {
    return ptx::BitsOf(function_->registers[static_cast<size_t>(reg)].type);
  }
  int32_t Constant(uint64_t bits, bool wide);
  /// Where a name lies; `in_frame` = relative to the function's stack frame.
  std::optional<uint64_t> SymbolAddress(const std::string& name, Space& space, bool& in_frame);
  std::optional<uint64_t> FunctionAddress(const std::string& name);
  /// Slot of a source operand read as `type`; kNoSlot when it cannot be one.
  int32_t Source(const Operand& operand, Type type);
  static bool IsOf(const Operand& constant, Type type);
  static uint64_t ImmediateBits(const Operand& operand, Type type);
  int32_t Destination(const Operand& operand) const;
  /// Registers of the first `count` entries of an operation's list, which it writes.
  bool Writable(const Op& op, size_t count) const;
  Status List(const std::vector<Operand>& elements, Op& op, const Instruction& instruction,
              bool destination, Type type = Type::kB32);
  /// dst, up to four sources, all of one type except where the opcode says otherwise.
  Status Operands(const Form& form, Op& op, Type source_type);

  // decode.cpp: instructions
  Status DecodeOne(const Instruction& instruction, Op& op);
  Status ByFamily(const Row& row, const Form& form, Op& op);
  Status DecodePlain(const Row& row, const Form& form, Op& op);
  void MarkWideRegisters(const Form& form, Op& op) const;
  Status DecodeCompare(const Form& form, Op& op);
  Status DecodeMove(const Form& form, Op& op);
  Status DecodeWideMove(const Instruction& instruction, Op& op);
  std::vector<int32_t> Halves(const Operand& operand) const;

  // decode_memory.cpp
  Space SpaceOf(const Form& form) const;
  Status Address(const Operand& operand, const Instruction& instruction, Op& op, int32_t& base);
  Status DecodeAddressSpace(const Form& form, Op& op);
  Status DecodeIsType(const Form& form, Op& op);
  Status DecodeClusterAddress(const Form& form, Op& op);
  Status DecodeMemory(const Form& form, Op& op);
  Status DecodeAtomic(const Form& form, Op& op);
  Status DecodeMulticast(const Form& form, Op& op);
  Status DecodeVectorAtomic(const Form& form, Op& op);
  Status DecodeRemoteStore(const Form& form, Op& op);
  Status DecodeAsync(const Form& form, Op& op);
  Status DecodeAsyncCopy(const Form& form, Op& op);
  Status DecodeBulkCopy(const Form& form, Op& op);
  Status DecodeTensorCopy(const Form& form, Op& op);
  Status BulkAddresses(const Operand& first, const Operand& second, const Operand* barrier,
                       const Instruction& instruction, Op& op);
  Status DecodeTensorMap(const Form& form, Op& op);
  Status DecodeMbarrier(const Form& form, Op& op);

  // decode_texture.cpp
  Status DecodeTexture(const Form& form, Op& op);
  Status DecodeTexelOffsets(const Form& form, Op& op, TextureOptions options);

  // decode_flow.cpp
  Status DecodeWarp(const Form& form, Op& op);
  Status DecodeStack(const Form& form, Op& op);
  Status DecodeMatrix(const Form& form, Op& op);
  Status DecodeTensor(const Form& form, Op& op);
  Status DecodeWmma(const Form& form, Op& op);
  Status DecodeWgmma(const Form& form, Op& op);
  Status DecodeBarrier(const Form& form, Op& op);
  Status DecodeBranch(const Instruction& instruction, Op& op);
  Status DecodeReturn(Op& op);
  Status DecodeCall(const Instruction& instruction, Op& op);
  Result<FramePart> CallParameter(const Operand& operand, const Instruction& instruction) const;

  const ptx::ValidModule& module_;
  const ptx::Function& entry_;
  const std::unordered_map<std::string, uint64_t>& symbols_;
  Kernel kernel_;
  /// Functions of Kernel::code, in its order
  std::vector<const ptx::Function*> work_;
  /// Of the call graph; callee -1 = by pointer
  std::vector<std::pair<int, int>> edges_;
  std::vector<int> addressed_;  ///< functions whose address is taken
  /// Shared variables that only called functions declare
  std::unordered_map<std::string, uint64_t> function_shared_;
  std::map<std::pair<uint64_t, bool>, int32_t> constants_;
  // Of the function that is being decoded.
  int code_ = 0;
  const ptx::Function* function_ = nullptr;
  std::vector<int32_t> slots_;
  int32_t frame_slot_ = kNoSlot;
};

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
