// The compiler behind NVRTC, opened at run time.
#pragma once

#include <memory>

#include "atunner/compile/compiler.h"

namespace atunner {

/// kUnavailable with what to install when there is no NVRTC. Compiles in the calling thread; calls
/// from several threads run in parallel. PTX candidates are assembled by nvJitLink, cubins pass
/// through.
Result<std::unique_ptr<Compiler>> MakeNvrtcCompiler();

}  // namespace atunner
