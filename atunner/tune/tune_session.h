// A tuning session from its request to its winner. The only place that knows the order of the
// phases:
//
//   MeasureBaseline   the task's plain kernel is verified and timed (BaselinePhase)
//   Search            candidates are proposed, compiled, judged and stored (SearchPhase)
//   Finals            the best are verified again with new inputs (FinalPhase, VirtualCheck)
//   Compare           the winner is timed beside the baselines (BaselinePhase)
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/compile/compiler.h"
#include "atunner/judge/judge.h"
#include "atunner/search/candidate_source.h"
#include "atunner/store/store.h"
#include "atunner/tune/judge_pool.h"
#include "atunner/tune/trial_log.h"
#include "atunner/tune/tune_event.h"
#include "atunner/tune/tune_request.h"
#include "atunner/tune/tune_result.h"
#include "atunner/tune/virtual_check.h"

namespace atunner {

class Proposals;
struct SessionContext;

class TuneSession {
 public:
  using Listener = TrialLog::Listener;
  enum class State : uint8_t { kReady, kBaseline, kSearch, kFinals, kCompare, kFinished };

  /// One judge per device, all of the same kind, at least one; the first one also judges baselines
  /// and finalists. With a `virtual_judge` the candidates for the win are also examined on a
  /// virtual GPU (VirtualCheck).
  TuneSession(TuneRequest request, Compiler& compiler, const std::vector<Judge*>& judges,
              Clock& clock, Judge* virtual_judge = nullptr)
      : request_(std::move(request)),
        compiler_(compiler),
        judge_(*judges.front()),
        judges_(judges, clock, request_.in_order),
        clock_(clock),
        virtual_check_(virtual_judge, clock) {}

  /// Trials go to `store` (may be null) under `run`. Those of an earlier, interrupted session of
  /// the run are read first, and their candidates are not judged again. A stop request ends the
  /// search; the best found so far then goes through the remaining phases. Call it once.
  Result<TuneResult> Run(Store* store, const RunRecord& run, const std::stop_token& stop,
                         const Listener& listener);
  State state() const { return state_; }

 private:
  /// The search over the schedule's space.
  struct Search {
    std::unique_ptr<SearcherSource> source;
    uint64_t space_size = 0;
    std::string prior_runs;  ///< one sentence on the runs that it learns from, or ""
  };

  Status RunPhases(const SessionContext& context, Proposals& proposals);
  Result<Search> MakeSearch(Store* store, const RunRecord& run) const;
  Result<std::string> LearnFromPriorRuns(Store& store, const RunRecord& run,
                                         std::shared_ptr<const SpaceIndex> index,
                                         SearchOptions& options) const;

  TuneRequest request_;
  Compiler& compiler_;
  Judge& judge_;
  JudgePool judges_;
  Clock& clock_;
  VirtualCheck virtual_check_;
  State state_ = State::kReady;
};

}  // namespace atunner
