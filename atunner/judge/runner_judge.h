// The judge in a process of its own. When a candidate crashes, hangs or corrupts the process, it is
// killed and started again.
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
  bool binary_only = false;              ///< send the cubin alone: a real device needs no PTX
  /// Keep the process when a new task begins. For candidates that are trusted.
  bool one_for_all_tasks = false;
};

/// Sends requests to a runner, which it starts when needed. When the runner dies while it examines
/// a candidate, that is the candidate's verdict.
class RunnerJudge : public Judge {
 public:
  explicit RunnerJudge(RunnerOptions options) : options_(std::move(options)) {}

  Status Begin(const JudgeTask& task) override;
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override;
  Result<Comparison> Compare(const CandidateKernel& baseline, const CandidateKernel& candidate,
                             int pairs, uint64_t seed) override;
  Result<Baseline> CompareVendor(const std::string& name, const CandidateKernel& candidate,
                                 int pairs, uint64_t seed) override;
  Result<std::vector<LaunchMetrics>> Count(const CandidateKernel& candidate,
                                           std::span<const std::string> metrics,
                                           uint64_t seed) override;
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
