// Reads the members of a class: data members and functions that the host may call.
#pragma once

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// Adds the class whose body opens at token `brace` and its nested classes to `syntax`. `before` is
/// the text before the word `class` or `struct`. Functions that are not marked for the device are
/// added to the source's host functions.
void ReadClass(CudaSyntax& syntax, TokenRange before, size_t brace);

}  // namespace atunner
