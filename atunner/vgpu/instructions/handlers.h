// Look-up of handlers by the form of an instruction, per subject.
#pragma once

#include <optional>
#include <string_view>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

// Handler look-ups, one per subject; nullptr = that form is not supported.
struct Form {
  const ptx::Instruction* instruction = nullptr;
  ptx::Type type = ptx::Type::kNone;  ///< last type modifier
  ptx::Type from = ptx::Type::kNone;  ///< second to last type modifier, if any
  bool Has(std::string_view modifier) const { return instruction->Has(modifier); }
};
Handler IntegerHandler(const Form& form, Op& op);
Handler FloatHandler(const Form& form, Op& op);
Handler VideoHandler(const Form& form, Op& op);
Handler LogicHandler(const Form& form, Op& op);
Handler CompareHandler(const Form& form, Op& op);
Handler ConvertHandler(const Form& form, Op& op);
Handler SpecialHandler(const Form& form, Op& op);
/// div.approx and div.full of float32.
Handler QuotientHandler(const Form& form);
Handler HalfHandler(const Form& form, Op& op);
Handler MemoryHandler(const Form& form, Op& op);
Handler AtomicHandler(const Form& form, Op& op);
/// True for plain loads and stores, which use Op::address_known.
bool IsAccess(const Op& op);
Handler WarpHandler(const Form& form, Op& op);
Handler TensorHandler(const Form& form, Op& op);
Handler AsyncHandler(const Form& form, Op& op);
Handler TensorCopyHandler(const Form& form, Op& op);
Handler TensorMapHandler(const Form& form, Op& op);
/// Number of elements of the field that a tensormap.replace names; 0 = a field without ordinals.
size_t TensorMapOrdinals(const Op& op);
Handler MbarrierHandler(const Form& form, Op& op);
Handler MatrixHandler(const Form& form, Op& op);
Handler WmmaHandler(const Form& form, Op& op);
Handler WgmmaHandler(const Form& form, Op& op);
Handler TextureHandler(const Form& form, Op& op);
/// printf, malloc and other functions that the driver provides to kernels. Op::imm is the call
/// site.
Handler SystemCallHandler(std::string_view name, size_t arguments, size_t results);
/// Matrix instructions need all lanes; false after reporting that some are missing.
bool WholeWarp(BlockState& x, const Op& op, uint32_t mask);
/// An 8-bit float of kE4M3x2's or kE5M2x2's element type.
float WidenFp8(ptx::Type type, uint32_t bits);
/// Makes `op` a move of registers of `bits` bits: 1, 16, 32 or 64.
void SetMove(Op& op, int bits);
void MoveUnpack(BlockState& x, const Op& op, uint32_t mask);
void MovePack(BlockState& x, const Op& op, uint32_t mask);
/// Op::imm of ReadSpecial for a special register; nullopt for other names.
std::optional<uint64_t> FindSpecial(std::string_view name);
/// True for special registers whose value changes while the kernel runs.
bool ReadsTime(std::string_view name);
void ReadSpecial(BlockState& x, const Op& op, uint32_t mask);
/// alloca, stacksave, stackrestore.
Handler StackHandler(const Form& form);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
