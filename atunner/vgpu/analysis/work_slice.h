// The part of a kernel that decides how much work each of its blocks does: the branches whose
// outcome may differ between blocks, and the instructions that their conditions depend on (a
// program slice, Weiser 1981). It runs in a small part of the kernel's time, so that all blocks of
// a grid can run it.
//
// Example: of `if (blockIdx.x * 256 + threadIdx.x < n) for (j = 0; j < 64; ++j) …` remains the
// comparison with n. The loop is the same for all blocks that reach it; it is replaced by a jump
// behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "atunner/ptx/module.h"

namespace atunner::vgpu {

enum class KeptBranches : uint8_t {
  kThatDiffer,  ///< those whose outcome may differ between blocks
  kByData,      ///< those whose outcome depends on global memory
  kAll          ///< all but those of waits for asynchronous copies and barriers
};

/// A basic block of the kernel that the slice runs as often as the kernel does.
struct CountedBlock {
  uint32_t first = 0;  ///< its first instruction, in the kernel
  uint32_t instructions = 0;
};

/// Allocations by their addresses, ascending; nullopt = any.
using Allocations = std::optional<std::vector<uint64_t>>;

struct WorkSlice {
  /// Why there is no slice: what of the kernel the analysis does not follow; "" = there is one.
  std::string unknown;
  /// There are no such branches. Of kThatDiffer: all blocks do the same.
  bool alike = false;
  bool reads_memory = false;   ///< conditions depend on global memory
  bool shares_memory = false;  ///< they depend on what the launch itself writes there
  /// A loop ends by the result of an atomic: blocks take work from a queue until none is left.
  bool takes_turns = false;
  std::vector<uint64_t> written;  ///< allocations that the slice writes
  Allocations read;               ///< that its conditions read
  Allocations stored;             ///< that the whole kernel writes
  ptx::Function function;
  /// Per instruction of `function`: instructions of the kernel's basic block that it stands for; 0
  /// where another one does.
  std::vector<uint32_t> weights;
  std::vector<CountedBlock> counted;
};

/// The allocation that a launch passes in a parameter (by name and byte) or that a variable of the
/// module has; 0 = none.
using AllocationOf = std::function<uint64_t(const std::string& name, uint64_t offset)>;

WorkSlice SliceOf(const ptx::Function& function, KeptBranches branches,
                  const AllocationOf& allocation_of);

}  // namespace atunner::vgpu
