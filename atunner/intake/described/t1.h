// Kernel Tuner's and BAT's "T1" JSON: a kernel file, its tunables, constraints, arguments and
// launch.
#pragma once

#include "atunner/intake/user_kernel.h"

namespace atunner {

/// `text` is the JSON, `where` its name for messages; `read` finds the kernel file. kInvalidInput
/// names the key.
Result<UserKernel> ParseT1(std::string_view text, const std::string& where, const FileReader& read);

}  // namespace atunner
