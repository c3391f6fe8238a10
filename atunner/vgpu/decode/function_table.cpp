#include "atunner/vgpu/decode/function_table.h"

#include <algorithm>

#include "atunner/vgpu/decode/register_slots.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint32_t kRecursionStackBytes = 32 * 1024;
constexpr uint32_t kAllocaBytes = 16 * 1024;

/// Places variables in a stack frame behind its `used` bytes.
std::vector<FramePart> PlaceInFrame(const std::vector<ptx::Variable>& variables, uint64_t& used) {
  std::vector<FramePart> parts;
  for (const ptx::Variable& variable : variables) {
    used = AlignUp(used, std::max(1u, variable.align));
    parts.push_back({static_cast<uint32_t>(used), static_cast<uint32_t>(variable.bytes)});
    used += variable.bytes;
  }
  return parts;
}

bool UsesAlloca(const Code& code) {
  return std::ranges::any_of(code.function->body,
                             [](const ptx::Instruction& i) { return i.opcode == "alloca"; });
}

}  // namespace

uint32_t AlignUp(uint64_t value, uint64_t align) {
  return static_cast<uint32_t>((value + align - 1) / align * align);
}

int FunctionTable::CodeOf(const ptx::Function& function) {
  const auto index = static_cast<uint32_t>(&function - module_.functions().data());
  const auto [at, added] = kernel_.code_of_function.emplace(index,
                                                            static_cast<int>(kernel_.code.size()));
  if (!added) return at->second;
  functions_.push_back(&function);
  const bool entry = kernel_.code.empty();
  Code code;
  code.function = &function;
  uint64_t used = 0;
  if (!entry) code.parameters = PlaceInFrame(function.params, used);
  if (!entry) code.results = PlaceInFrame(function.returns, used);
  code.frame_bytes = AlignUp(AlignUp(used, 16) + function.local_bytes, 16);
  code.first_slot = static_cast<int32_t>(kernel_.register_slots);
  // A function that may be active twice saves its registers one by one, so that they share no
  // slots.
  RegisterSlots slots = AssignSlots(function, code.first_slot, entry);
  kernel_.register_slots = static_cast<uint32_t>(slots.end);
  code.slot_of_register = std::move(slots.first);
  code.frame_slot = entry ? kNoSlot : static_cast<int32_t>(kernel_.register_slots++);
  code.slots = kernel_.register_slots - static_cast<uint32_t>(code.first_slot);
  kernel_.code.push_back(std::move(code));
  return at->second;
}

FunctionTable::Reachable FunctionTable::ReachableFunctions() const {
  const size_t n = kernel_.code.size();
  Reachable reaches(n, std::vector<bool>(n, false));
  for (const auto& [caller, callee] : calls_)
    reaches[static_cast<size_t>(caller)][static_cast<size_t>(callee)] = true;
  for (int caller : indirect_callers_) {
    for (int callee : address_taken_)
      reaches[static_cast<size_t>(caller)][static_cast<size_t>(callee)] = true;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; reaches[i][k] && j < n; ++j)
        reaches[i][j] = reaches[i][j] || reaches[k][j];
    }
  }
  return reaches;
}

void FunctionTable::MarkRecursion() {
  const Reachable reaches = ReachableFunctions();
  bool any = false;
  for (size_t i = 0; i < kernel_.code.size(); ++i) {
    kernel_.code[i].recursive = reaches[i][i];
    any |= reaches[i][i];
    kernel_.local_bytes += kernel_.code[i].frame_bytes;
  }
  if (any) kernel_.local_bytes += kRecursionStackBytes;
  if (std::ranges::any_of(kernel_.code, UsesAlloca))
    kernel_.local_bytes += kernel_.alloca_bytes = kAllocaBytes;
}

std::vector<uint8_t> FunctionTable::WordsOfRegisters() const {
  std::vector<uint8_t> words;
  for (const ptx::Function* function : functions_) {
    for (const ptx::Register& reg : function->registers) {
      const int bits = ptx::BitsOf(reg.type);
      // Addresses share a base in uniform registers: one register each, not two.
      const bool address = bits == 64 && reg.type != ptx::Type::kF64;
      words.push_back(static_cast<uint8_t>(bits == 1 ? 0 : address ? 1 : std::max(1, bits / 32)));
    }
  }
  return words;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
