// Reads the resources of a cubin's kernels. The bytes are untrusted: every offset is checked.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/kernel/compiled_module.h"

namespace atunner {

/// Kernels in symbol order with registers, static shared, local and constant bytes and the largest
/// possible block. Spills are not in a cubin; see ApplySpills. kInvalidInput for anything that is
/// not a 64-bit CUDA ELF.
Result<std::vector<KernelResources>> ReadCubin(std::string_view bytes);

/// Machine code and initial contents of variables, by section (".text.scan", ".nv.global.init"):
/// what a GPU executes, without line numbers and names. kInvalidInput as ReadCubin.
Result<std::map<std::string, std::string_view>> CodeOfCubin(std::string_view bytes);

/// Fills spill bytes from the text that ptxas prints with -v; unknown kernels are ignored.
void ApplySpills(std::string_view ptxas_log, std::vector<KernelResources>& kernels);

/// Largest block size at this register use, a multiple of 32. The driver counts as if the block's
/// warps filled the four register-file partitions of 16 384 evenly, and a warp takes multiples of
/// 256.
uint32_t MaxThreadsForRegisters(uint32_t registers);

}  // namespace atunner
