// A tuning session whose candidates come from outside, in rounds:
//
//   Begin   the plain kernel is verified and timed (BaselinePhase)
//   Try     the candidates of a round are compiled, judged and stored (SearchPhase); any number
//           of times
//   Finish  the best are verified again with new inputs, and the winner is compared (FinalPhase)
//
// TuneSession does the same with one search in the place of the rounds.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/compile/compiler.h"
#include "atunner/judge/judge.h"
#include "atunner/store/store.h"
#include "atunner/tune/baseline_phase.h"
#include "atunner/tune/judge_pool.h"
#include "atunner/tune/session_context.h"
#include "atunner/tune/trial_log.h"
#include "atunner/tune/tune_request.h"
#include "atunner/tune/tune_result.h"
#include "atunner/tune/virtual_check.h"

namespace atunner {

class RoundSession {
 public:
  /// As for TuneSession. `store` may be null; it, `run` and all references must outlive the object.
  /// The request's strategy and sources are not used.
  RoundSession(TuneRequest request, Compiler& compiler, const std::vector<Judge*>& judges,
               Clock& clock, Judge* virtual_judge, Store* store, const RunRecord& run,
               std::stop_token stop, TrialLog::Listener listener);

  /// Reads the trials of earlier sessions of the run, and judges the plain kernel. Call it first.
  Status Begin();
  /// Judges those of the candidates that the run does not have yet, in their order. It ends early
  /// when the user stops, the budget is spent or a result is at the task's floor; see
  /// TuneResult::stop_reason.
  Status Try(std::vector<Candidate> candidates);
  /// `reason`: why no other round follows. Call it last.
  Status Finish(std::string reason);
  const TuneResult& result() const { return result_; }

 private:
  TuneRequest request_;
  std::optional<double> seconds_;  ///< the time budget of all rounds
  std::stop_token stop_;
  TrialLog::Listener listener_;
  TuneResult result_;
  TrialLog log_;
  CandidateCompiler compiler_;
  SessionContext context_;
  JudgePool judges_;
  VirtualCheck virtual_check_;
  BaselinePhase baselines_;
};

}  // namespace atunner
