// Compiling in worker processes: a source that the compiler chews on for ever, or dies of, costs
// its own trial.
#pragma once

#include <mutex>
#include <vector>

#include "atunner/base/worker_process.h"
#include "atunner/compile/compiler.h"

namespace atunner {

struct CompileWorkerOptions {
  WorkerOptions worker;  ///< a process that runs ServeCompiler
  double timeout_seconds = 60;
};

/// As many workers as there are calls at a time; they are started when needed and kept.
class WorkerCompiler : public Compiler {
 public:
  /// `version`: what the workers' compiler answers to Version().
  WorkerCompiler(CompileWorkerOptions options, std::string version)
      : options_(std::move(options)), version_(std::move(version)) {}

  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& stop = {}) override;
  std::string Version() const override { return version_; }

 private:
  Result<WorkerProcess> Take();
  void Return(WorkerProcess worker);
  CompileOutcome Obituary(const WorkerDeath& death, const std::stop_token& stop) const;

  CompileWorkerOptions options_;
  std::string version_;
  std::mutex mutex_;
  std::vector<WorkerProcess> idle_;
};

/// The worker's loop over `compiler` until the parent hangs up. Returns the exit code.
int ServeCompiler(Compiler& compiler);

}  // namespace atunner
