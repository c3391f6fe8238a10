// Finds the tunable parameters of a bare source: constants, template arguments, block and grid
// sizes that can change without making the kernel wrong.
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
  Configuration initial;                     ///< the source's own values
  LaunchText launch;                         ///< in terms of the parameters
  std::vector<std::string> notes;            ///< why something is not tuned
  std::set<std::string, std::less<>> fixed;  ///< names whose values are compiled into the binary
};

struct TunableOptions {
  bool register_limit = false;  ///< also tune the register limit and grid-stride grids
  int multiprocessors = 100;    ///< SMs of the target, for the sizes of grid-stride grids
};

Result<SourceTunables> FindTunables(const SourceReading& reading, const TunableOptions& options);

/// True if the expression names one of the parameters.
bool HasParameter(const ParameterSpace& space, const std::string& text);

}  // namespace atunner
