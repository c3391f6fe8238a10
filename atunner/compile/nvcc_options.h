// Options without which nvcc does not build a program, found in its source and in nvcc's messages.
//
// Example: a file that includes <cublas_v2.h> needs -lcublas; "undefined reference" asks for the
// sources beside it; a header that is missing may lie in ../common.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/files.h"

namespace atunner {

/// Libraries and flags for what the text includes and uses.
std::vector<std::string> OptionsForSource(const std::string& text);

/// What to do after nvcc refused a program.
struct NvccRemedy {
  std::vector<std::string> options;  ///< to be added
  std::vector<Path> sources;         ///< to be compiled as well
  std::string reason;                ///< "../common has helper.h"
};

/// nullopt if nothing is known to help. `messages`: of nvcc. `headers`: a folder for headers that
/// the program lacks and we have.
std::optional<NvccRemedy> FindNvccRemedy(const std::string& messages, const Path& source,
                                         const std::vector<std::string>& options,
                                         const Path& headers);

}  // namespace atunner
