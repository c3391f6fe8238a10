// NVRTC for tests that compile the same kernels again and again: judges' own, references, plain
// twins.
#pragma once

#include <memory>

#include "atunner/base/files.h"
#include "atunner/compile/cached_compiler.h"
#include "atunner/compile/nvrtc_compiler.h"

namespace atunner {

/// As MakeNvrtcCompiler; what one test of this program has compiled, the others need not.
inline Result<std::unique_ptr<Compiler>> MakeSharedCompiler() {
  static const TemporaryDirectory compiled;
  auto made = MakeNvrtcCompiler();
  if (!made) return std::unexpected(made.error());
  return std::make_unique<CachedCompiler>(*std::move(made), compiled.path());
}

}  // namespace atunner
