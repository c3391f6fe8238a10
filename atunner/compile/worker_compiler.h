// Compiling in worker processes. A source that hangs or crashes the compiler fails alone.
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

/// Starts one worker per concurrent call and keeps it for later calls.
class WorkerCompiler : public Compiler {
 public:
  /// `version`: the Version() of the workers' compiler.
  WorkerCompiler(CompileWorkerOptions options, std::string version)
      : options_(std::move(options)), version_(std::move(version)) {}

  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& stop = {}) override;
  std::string Version() const override { return version_; }

 private:
  Result<WorkerProcess> Take();
  void Return(WorkerProcess worker);
  /// The outcome of a source over which the worker died or was stopped.
  CompileOutcome OutcomeOfDeath(const WorkerDeath& death, const std::stop_token& stop) const;

  CompileWorkerOptions options_;
  std::string version_;
  std::mutex mutex_;
  std::vector<WorkerProcess> idle_;
};

/// The worker's loop: compiles requests until the parent closes the channel. Returns the exit code.
int ServeCompiler(Compiler& compiler);

}  // namespace atunner
