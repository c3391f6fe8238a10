// Defaults for a kernel that its source does not launch.
#pragma once

#include <optional>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// A launch with a thread for each of `size` elements, which all buffers have.
struct LoneKernel {
  std::string size;     ///< the kernel's only integer parameter
  std::string threads;  ///< of a block, a number
};

/// nullopt for kernels with more than one integer parameter or with more than one axis: their
/// buffers do not follow from a size.
std::optional<LoneKernel> LoneKernelOf(const CudaSyntax& syntax, const KernelDefinition& kernel);

/// "block = 256, grid = ceil_div(n, 256) and n elements of each buffer"
std::string Describe(const LoneKernel& kernel);

}  // namespace atunner
