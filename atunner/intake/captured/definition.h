// Finds a captured kernel in the source that it was compiled from.
#pragma once

#include "atunner/capture/signature.h"
#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// The kernel with this name and as many parameters; nullptr if the source does not define it.
const KernelDefinition* FindDefinition(const CudaSyntax& syntax,
                                       const capture::Signature& signature);

}  // namespace atunner
