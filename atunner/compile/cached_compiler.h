// A cache of compiled kernels on disk, addressed by content.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

#include "atunner/compile/compiler.h"

namespace atunner {

/// The cache key: source, its own headers, entries, architecture, compiler version. Leading
/// comments of a CUDA source do not count, so that configurations with equal source share one
/// binary although the comment names their launch. nullopt if the headers cannot be determined
/// (compile/headers.h).
std::optional<Digest> CacheKey(const CompileRequest& request, const std::string& compiler_version);

/// Keeps successes and failures. A damaged entry counts as absent. Several processes may share the
/// folder. Concurrent requests of one process for the same key are compiled once.
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
  std::set<std::string> claimed_;  ///< keys that a thread is compiling
};

}  // namespace atunner
