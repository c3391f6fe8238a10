// NVRTC with a cache for tests that compile the same kernels repeatedly: the judge's own,
// references and baselines.
#pragma once

#include <memory>

#include "atunner/base/files.h"
#include "atunner/compile/cached_compiler.h"
#include "atunner/compile/nvrtc_compiler.h"

namespace atunner {

/// MakeNvrtcCompiler with one cache for all tests of this program.
inline Result<std::unique_ptr<Compiler>> MakeSharedCompiler() {
  static const TemporaryDirectory compiled;
  auto made = MakeNvrtcCompiler();
  if (!made) return std::unexpected(made.error());
  return std::make_unique<CachedCompiler>(*std::move(made), compiled.path());
}

}  // namespace atunner
