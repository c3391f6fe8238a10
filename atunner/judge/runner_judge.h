// The judge in a process of its own: what a candidate crashes, hangs or corrupts is killed and
// started again.
#pragma once

#include <functional>
#include <memory>

#include "atunner/base/worker_process.h"
#include "atunner/judge/judge.h"

namespace atunner {

struct RunnerOptions {
  WorkerOptions worker;
  double begin_timeout_seconds = 300;    ///< references of a large task are computed here
  double examine_timeout_seconds = 120;  ///< one candidate
  bool binary_only = false;              ///< a real device takes the cubin: its PTX need not travel
  /// A task begins in the last one's process: where no candidate is a stranger's
  bool one_for_all_tasks = false;
};

/// Speaks to a runner; starts it when needed. A death while a candidate is examined becomes that
/// candidate's verdict.
class RunnerJudge : public Judge {
 public:
  explicit RunnerJudge(RunnerOptions options) : options_(std::move(options)) {}

  Status Begin(const JudgeTask& task) override;
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override;
  Result<Comparison> Compare(const CandidateKernel& baseline, const CandidateKernel& candidate,
                             int pairs, uint64_t seed) override;
  Result<Baseline> CompareVendor(const std::string& name, const CandidateKernel& candidate,
                                 int pairs, uint64_t seed) override;
  /// How often a runner had to be started again.
  int restarts() const { return restarts_; }

 private:
  Status EnsureRunning();
  Status BeginThere();
  Result<std::string> Call(const std::string& message, double timeout);

  RunnerOptions options_;
  std::optional<WorkerProcess> worker_;
  std::optional<JudgeTask> task_;
  int restarts_ = 0;
};

/// The runner's loop over `judge` until the parent hangs up. Returns the exit code.
int ServeJudge(Judge& judge);

}  // namespace atunner
