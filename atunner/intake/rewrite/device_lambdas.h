// Lambdas of the device in the host's code.
#pragma once

#include <string>

namespace atunner {

/// The source with `[=] __device__(int i) { y[i] = k * x[i]; }` written as a structure of what it
/// captures, with a call operator: structures of numbers and pointers can be passed to kernels. A
/// lambda stays as it is where it captures by reference, or something whose type is not written in
/// the function: `auto`, members.
std::string WithLambdasNamed(const std::string& source);

}  // namespace atunner
