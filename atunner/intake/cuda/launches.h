// Finds the kernel launches of a source.
#pragma once

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// Adds the launches of a source whose declarations have been read: k<<<grid, block>>>(…),
/// cudaLaunchKernel, cudaLaunchCooperativeKernel and cudaLaunchKernelEx.
void ReadLaunches(CudaSyntax& syntax);

/// True for three adjacent tokens `symbol` at `i`, i.e. <<< or >>>.
bool IsTriple(const CudaSyntax& syntax, size_t i, std::string_view symbol);

}  // namespace atunner
