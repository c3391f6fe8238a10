// Register reads and writes of a function's instructions, and the basic blocks of its body.
#pragma once

#include <string_view>
#include <vector>

#include "atunner/ptx/module.h"

namespace atunner::vgpu {

/// Registers of one instruction by what it does with them.
struct Use {
  std::vector<int> writes, addresses, values;
};
Use UseOf(const ptx::Instruction& instruction);
/// The register use of each instruction of the body.
std::vector<Use> UsesOf(const ptx::Function& function);

struct BasicBlock {
  size_t first = 0;          ///< instruction
  size_t end = 0;            ///< one past the last
  std::vector<size_t> next;  ///< blocks
};
/// In the order of the text; the first is the function's entry.
std::vector<BasicBlock> BlocksOf(const ptx::Function& function);

}  // namespace atunner::vgpu
