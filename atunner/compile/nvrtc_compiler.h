// The compiler that uses NVRTC, opened at run time.
#pragma once

#include <memory>

#include "atunner/compile/compiler.h"

namespace atunner {

/// kUnavailable with a hint what to install if there is no NVRTC. Compiles in the calling thread;
/// calls from several threads run in parallel. PTX candidates are assembled by nvJitLink, cubins
/// pass through.
Result<std::unique_ptr<Compiler>> MakeNvrtcCompiler();

}  // namespace atunner
