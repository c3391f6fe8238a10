// A kernel described by a TOML file: docs/formats/kernel-toml.md.
#pragma once

#include "atunner/intake/user_kernel.h"

namespace atunner {

/// `text` is the TOML, `where` its name for messages; `read` finds the sources it names. Mistakes
/// are kInvalidInput with file and line.
Result<UserKernel> ParseKernelToml(std::string_view text, const std::string& where,
                                   const FileReader& read);

}  // namespace atunner
