// The flags of `sanitize`, for kernels and for whole programs.
#pragma once

#include <string>
#include <vector>

#include "faces/cli/flags/kernel_flags.h"

namespace atunner::cli {

struct SanitizeFlags {
  KernelFlags kernel;
  std::vector<std::string> program;  ///< instead of a kernel: an executable and its arguments
  std::string checks = "memory,init,race,sync";
  size_t max_reports = 100;
  /// Warp instructions of a block; more count as an endless loop.
  uint64_t max_instructions = uint64_t{1} << 28;
};

}  // namespace atunner::cli
