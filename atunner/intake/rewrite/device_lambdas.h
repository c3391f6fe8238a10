// Rewrites device lambdas in host code.
#pragma once

#include <string>

namespace atunner {

/// Replaces each device lambda, e.g. `[=] __device__(int i) { y[i] = k * x[i]; }`, by a structure
/// with its captures as members and a call operator. Structures of numbers and pointers can be
/// passed to kernels. A lambda stays if it captures by reference, or captures a member or an `auto`
/// variable, whose type is not written in the function.
std::string WithLambdasNamed(const std::string& source);

}  // namespace atunner
