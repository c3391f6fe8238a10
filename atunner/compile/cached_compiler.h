// Remembers what was compiled, on disk, by content.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

#include "atunner/compile/compiler.h"

namespace atunner {

/// The cache key: source, headers of its own, entries, architecture, compiler version. Comments
/// that a CUDA source begins with do not count: configurations that differ in their launches alone
/// have one binary. nullopt where the headers cannot be told (compile/headers.h).
std::optional<Digest> CacheKey(const CompileRequest& request, const std::string& compiler_version);

/// Successes and failures are both kept. A damaged entry counts as absent. Several processes may
/// share the folder; threads of one wait for each other's answers instead of asking for the same
/// twice.
class CachedCompiler : public Compiler {
 public:
  CachedCompiler(std::unique_ptr<Compiler> inner, Path folder)
      : inner_(std::move(inner)), folder_(std::move(folder)) {}

  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& stop = {}) override;
  std::string Version() const override { return inner_->Version(); }

 private:
  class Claim;

  Result<CompileOutcome> CompileNow(const CompileRequest& request, const std::stop_token& stop,
                                    const Digest& key, const Path& file);

  std::unique_ptr<Compiler> inner_;
  Path folder_;
  std::mutex mutex_;
  std::condition_variable_any released_;
  std::set<std::string> claimed_;  ///< keys that some thread compiles
};

}  // namespace atunner
