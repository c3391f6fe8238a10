// The context in which an instruction is decoded: the kernel that is built, the current function,
// and the slots of operands.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "atunner/vgpu/decode/function_table.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

using Symbols = std::unordered_map<std::string, uint64_t>;

/// Turns operands into slots: registers have slots from 0 upwards, constants below 0.
class DecodeContext {
 public:
  DecodeContext(const ptx::ValidModule& module, const ptx::Function& entry, const Symbols& symbols);

  // The kernel and its functions.
  Kernel& kernel() { return kernel_; }
  FunctionTable& functions() { return functions_; }
  const ptx::ValidModule& module() const { return module_; }
  const Symbols& symbols() const { return symbols_; }
  /// Makes a function of the table the current one.
  void EnterFunction(int code);
  int code() const { return code_; }
  const ptx::Function& function() const { return *function_; }
  bool IsEntry() const { return code_ == 0; }
  /// Slot of the current function's stack frame address.
  int32_t frame_slot() const { return CurrentCode().frame_slot; }
  const Code& CurrentCode() const { return kernel_.code[static_cast<size_t>(code_)]; }

  /// The error for an instruction that has no handler, with its line.
  std::unexpected<Error> Unsupported(const ptx::Instruction& instruction,
                                     std::string_view detail = "") const;

  // Operands of one register or constant.
  int RegisterBits(int reg) const {
    return ptx::BitsOf(function_->registers[static_cast<size_t>(reg)].type);
  }
  int32_t SlotOf(int reg) const { return CurrentCode().slot_of_register[static_cast<size_t>(reg)]; }
  /// Slot of a constant that all lanes share; `wide`: it has 64 bits.
  int32_t Constant(uint64_t bits, bool wide);
  /// Slot of a source operand read as `type`; kNoSlot when it cannot be one.
  int32_t Source(const ptx::Operand& operand, ptx::Type type);
  int32_t Destination(const ptx::Operand& operand) const;
  /// Slots of the halves of a 128-bit register, or of two 64-bit registers; empty for others.
  std::vector<int32_t> Halves(const ptx::Operand& operand) const;

  // Operands of an operation.
  /// Destination and up to four sources, all of `source_type` except where the opcode says
  /// otherwise.
  Status Operands(const Form& form, Op& op, ptx::Type source_type);
  /// kInvalidInput for a register whose size or kind is not that of the instruction: PTX converts
  /// nothing by itself.
  Status CheckRegisters(const Form& form) const;
  /// Fails unless the operation has a destination, and a slot for each source.
  Status Complete(const ptx::Instruction& instruction, const Op& op) const;
  /// The elements of a vector as the operation's list.
  Status List(const std::vector<ptx::Operand>& elements, Op& op,
              const ptx::Instruction& instruction, bool destination,
              ptx::Type type = ptx::Type::kB32);
  /// Begins the operation's list and appends slots to it.
  void AppendList(Op& op, const std::vector<int32_t>& slots);
  /// True if the first `count` entries of the operation's list are registers.
  bool Writable(const Op& op, size_t count) const;

  // Addresses.
  Space SpaceOf(const Form& form) const;
  /// Base register or absolute address into `base` and Op::imm.
  Status Address(const ptx::Operand& operand, const ptx::Instruction& instruction, Op& op,
                 int32_t& base);
  /// Address of a variable; `in_frame` = it is relative to the function's stack frame.
  std::optional<uint64_t> SymbolAddress(const std::string& name, Space& space, bool& in_frame);
  /// The value of a pointer to a function; nullopt for names of no function or of a kernel.
  std::optional<uint64_t> FunctionAddress(const std::string& name);

 private:
  /// Assigns addresses to shared variables: the kernel's own first, then those that functions
  /// declare for themselves, then the dynamic part.
  void PlaceShared();
  std::optional<uint64_t> FrameOffset(const std::string& name) const;

  const ptx::ValidModule& module_;
  const ptx::Function& entry_;
  const Symbols& symbols_;
  Kernel kernel_;
  FunctionTable functions_;
  Symbols function_shared_;  ///< shared variables that only called functions declare
  std::map<std::pair<uint64_t, bool>, int32_t> constants_;
  int code_ = 0;
  const ptx::Function* function_ = nullptr;
};

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
