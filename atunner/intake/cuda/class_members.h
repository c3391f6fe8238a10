// Reads the member functions of a class that the host may call.
#pragma once

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// Adds the functions of the class whose body opens at token `brace`, and of its nested classes, to
/// the host functions of `syntax`, except those that are marked for the device alone. `before` is
/// the text before the word `class` or `struct`.
void ReadClass(CudaSyntax& syntax, TokenRange before, size_t brace);

}  // namespace atunner
