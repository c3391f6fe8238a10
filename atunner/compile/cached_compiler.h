// Remembers what was compiled, on disk, by content.
#pragma once

#include <memory>

#include "atunner/compile/compiler.h"

namespace atunner {

/// The cache key: source, headers of its own, entries, architecture, compiler version. nullopt where the headers cannot
/// be told (compile/headers.h).
std::optional<Digest> CacheKey(const CompileRequest& request, const std::string& compiler_version);

/// Successes and failures are both kept. A damaged entry counts as absent. Several processes may share the folder.
class CachedCompiler : public Compiler {
 public:
  CachedCompiler(std::unique_ptr<Compiler> inner, Path folder) : inner_(std::move(inner)), folder_(std::move(folder)) {}

  Result<CompileOutcome> Compile(const CompileRequest& request, const std::stop_token& stop = {}) override;
  std::string Version() const override { return inner_->Version(); }

 private:
  std::unique_ptr<Compiler> inner_;
  Path folder_;
};

}  // namespace atunner
