// What a class of the source has: data members, and functions that the host may call.
#pragma once

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// Adds the class whose body opens at token `brace`, and the classes in it; `before` is what stands
/// in front of the word `class` or `struct`. Its functions that are not marked for the device join
/// the source's.
void ReadClass(CudaSyntax& syntax, TokenRange before, size_t brace);

}  // namespace atunner
