// Which registers may differ between the blocks of a launch, and which memory an access may reach.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "atunner/vgpu/analysis/control_flow.h"
#include "atunner/vgpu/analysis/memory_use.h"
#include "atunner/vgpu/analysis/work_slice.h"

namespace atunner::vgpu {

/// Why a value may differ between blocks, one bit each.
constexpr uint8_t kByBlock = 1;   ///< it depends on the block's index
constexpr uint8_t kByMemory = 2;  ///< it was read from memory that differs or changes
constexpr uint8_t kByTime = 4;    ///< it depends on a clock or on the SM

/// Facts of a function's instructions that need its whole body. Registers count as one variable
/// each, wherever they are defined.
class BlockVariance {
 public:
  /// `by_data`: what is read from global memory always counts as kByMemory, even where all blocks
  /// read the same.
  BlockVariance(const ptx::Function& function, const ControlFlow& flow,
                const AllocationOf& allocation_of, bool by_data);

  const std::vector<Use>& uses() const { return uses_; }
  const std::vector<MemoryUse>& memory() const { return memory_; }
  /// Instructions that write a register.
  const std::vector<size_t>& DefinitionsOf(int reg) const {
    return definitions_[static_cast<size_t>(reg)];
  }
  /// Reasons why the condition of the branch that ends a block may differ.
  uint8_t OfBranch(size_t block) const;
  /// True if the store or atomic `write` may change what `read` reads.
  bool MayAlias(size_t write, size_t read) const;
  /// Allocations that a global access may reach, sorted; empty = any.
  const std::vector<uint64_t>& AllocationsOf(size_t instruction) const;
  /// Blocks that can run between a block's branch and its join, per successor.
  const std::vector<std::vector<bool>>& SidesOf(size_t block) const { return sides_[block]; }

 private:
  void FindRoots(const AllocationOf& allocation_of);
  bool AddRoots(size_t instruction, const AllocationOf& allocation_of);
  void FindSides();
  void FindReasons();
  uint8_t ReasonOf(size_t instruction) const;
  uint8_t ReasonOfLoad(size_t instruction) const;
  uint8_t ReasonOfRegisters(const std::vector<int>& registers) const;
  uint8_t OfStores(uint8_t space) const;
  bool IsReadOnOneSide(size_t decider, int reg) const;
  uint8_t ByChoice(int reg) const;
  uint32_t SidesAt(size_t decider, size_t block) const;
  bool IsRewritten(size_t load) const;

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const bool by_data_;
  std::vector<Use> uses_;
  std::vector<MemoryUse> memory_;
  std::vector<std::vector<size_t>> definitions_;  ///< per register
  std::vector<std::vector<size_t>> readers_;      ///< per register
  std::vector<uint8_t> reasons_;                  ///< per register
  std::array<uint8_t, 8> stored_{};               ///< per space: reasons of what is stored there
  std::vector<std::vector<uint64_t>> roots_;      ///< per register, sorted
  std::vector<std::vector<uint64_t>> access_roots_;
  std::vector<std::vector<std::vector<bool>>> sides_;
};

}  // namespace atunner::vgpu
