// Reads a kernel described by a TOML file, see docs/formats/kernel-toml.md.
#pragma once

#include "atunner/intake/user_kernel.h"

namespace atunner {

/// `text` is the TOML and `where` its name in messages; `read` finds the sources that it names.
/// kInvalidInput names file and line.
Result<UserKernel> ParseKernelToml(std::string_view text, const std::string& where,
                                   const FileReader& read);

}  // namespace atunner
