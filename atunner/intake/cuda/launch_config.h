// Launches by cudaLaunchKernelEx(&config, kernel, arguments…), whose extents are fields of
// `config`.
#pragma once

#include <optional>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// The launch of the call at token `call`, with the last values assigned to the fields before it;
/// nullopt if it is not understood.
std::optional<KernelLaunch> ConfiguredLaunch(const CudaSyntax& syntax, size_t call);

}  // namespace atunner
