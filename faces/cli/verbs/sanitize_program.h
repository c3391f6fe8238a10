// `sanitize -- PROGRAM`: all that a program launches.
#pragma once

#include "faces/cli/flags/sanitize_flags.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {

/// Runs `flags.program` with the virtual GPU in the place of CUDA's driver and runtime. The exit
/// code is 1 if there are hazards.
Result<int> SanitizeProgram(const SanitizeFlags& flags, const Common& common);

}  // namespace atunner::cli
