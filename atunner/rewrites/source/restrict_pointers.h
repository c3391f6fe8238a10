// Promises the compiler that pointers do not alias, and reads inputs as constants.
//
//     void f(float* y, const float* x)  →  void f(float* __restrict__ y, const float* __restrict__
//     x)
#pragma once

#include "atunner/rewrites/rewrite.h"

namespace atunner::rewrites {

Result<std::vector<Proposal>> RestrictPointers(const Subject& subject);

}  // namespace atunner::rewrites
