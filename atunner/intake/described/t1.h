// Reads the "T1" JSON of Kernel Tuner and BAT: a kernel file with its tunables, constraints,
// arguments and launch.
#pragma once

#include "atunner/intake/user_kernel.h"

namespace atunner {

/// `text` is the JSON and `where` its name in messages; `read` finds the kernel file. kInvalidInput
/// names the key.
Result<UserKernel> ParseT1(std::string_view text, const std::string& where, const FileReader& read);

}  // namespace atunner
