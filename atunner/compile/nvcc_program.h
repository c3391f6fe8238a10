// Builds a whole program from a .cu file by nvcc, where that is installed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/files.h"

namespace atunner {

/// nvcc in PATH, or in the CUDA installation that CUDA_HOME names; nullopt if there is none.
std::optional<Path> FindNvcc();

struct NvccRequest {
  Path source;
  std::vector<std::string> options;  ///< of the user: -I, -D, -std, -l
  int arch = 80;                     ///< of the PTX in the program: 80 = compute_80
  Path program;                      ///< the executable to make
};

/// With -lineinfo, so that kernels know their source lines. kUnavailable without nvcc,
/// kInvalidInput with its messages where it refuses the source.
Status BuildProgram(const NvccRequest& request);

/// Splits "-std=c++17 -I 'my include'" at blanks outside of quotes.
std::vector<std::string> SplitOptions(const std::string& text);

}  // namespace atunner
