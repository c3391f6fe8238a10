// What of a bare source can be varied: constants, template arguments, block and grid, as far as the
// kernel stays right.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "atunner/intake/bare/source_reading.h"
#include "atunner/intake/user_kernel.h"

namespace atunner {

struct SourceTunables {
  ParameterSpace space;
  std::vector<Injection> injections;         ///< one per parameter
  Configuration initial;                     ///< as the source has it
  LaunchText launch;                         ///< in terms of the parameters
  std::vector<std::string> notes;            ///< what is not tuned, and why
  std::set<std::string, std::less<>> fixed;  ///< names whose values are part of the binary
};

struct TunableOptions {
  bool register_limit = false;  ///< also the compiler's; and grids that kernels stride by
  int multiprocessors = 100;    ///< of the target, for grids that may have any size
};

Result<SourceTunables> FindTunables(const SourceReading& reading, const TunableOptions& options);

/// Does one of the parameters stand in the text?
bool HasParameter(const ParameterSpace& space, const std::string& text);

}  // namespace atunner
