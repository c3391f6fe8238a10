// Launches by cudaLaunchKernelEx(&config, kernel, arguments…): what the host puts into the fields
// of `config`.
#pragma once

#include <optional>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// The launch of the call at token `call`; the fields are the last ones that are written before it.
std::optional<KernelLaunch> ConfiguredLaunch(const CudaSyntax& syntax, size_t call);

}  // namespace atunner
