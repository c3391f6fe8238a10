// The functions of a kernel: the kernel itself and those that it may call.
#pragma once

#include <utility>
#include <vector>

#include "atunner/ptx/module.h"
#include "atunner/vgpu/state/decoded.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

constexpr int32_t kNoSlot = INT32_MIN;

/// Fills Kernel::code: frames, register slots, and which functions are recursive.
class FunctionTable {
 public:
  FunctionTable(const ptx::ValidModule& module, Kernel& kernel)
      : module_(module), kernel_(kernel) {}

  /// Index of a function in Kernel::code; a new function is added. The first one is the kernel.
  int CodeOf(const ptx::Function& function);
  size_t size() const { return functions_.size(); }
  const ptx::Function& operator[](int code) const { return *functions_[static_cast<size_t>(code)]; }
  void AddCall(int caller, int callee) { calls_.emplace_back(caller, callee); }
  /// A call by pointer, which may reach every function whose address is taken.
  void AddIndirectCall(int caller) { indirect_callers_.push_back(caller); }
  void AddAddressTaken(int code) { address_taken_.push_back(code); }

  /// Marks the functions that can be active twice in one thread, and sets the size of its stack.
  void MarkRecursion();
  /// Machine registers that each register of all functions takes: none for predicates, two for 64
  /// bits.
  std::vector<uint8_t> WordsOfRegisters() const;

 private:
  using Reachable = std::vector<std::vector<bool>>;  // [caller][callee]
  Reachable ReachableFunctions() const;

  const ptx::ValidModule& module_;
  Kernel& kernel_;
  std::vector<const ptx::Function*> functions_;  ///< in the order of Kernel::code
  std::vector<std::pair<int, int>> calls_;       ///< caller and callee
  std::vector<int> indirect_callers_;
  std::vector<int> address_taken_;
};

/// `value` rounded up to a multiple of `align`.
uint32_t AlignUp(uint64_t value, uint64_t align);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
