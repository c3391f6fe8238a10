// The part of a flow that is not state: the tuning job, which is opened when a node first needs it,
// and the analyst.
#pragma once

#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/agents/analysis.h"
#include "atunner/agents/idea.h"
#include "atunner/agents/llm_proposals.h"
#include "atunner/agents/request.h"
#include "atunner/jobs/evidence/kernel_profiler.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/jobs/runs/round_tuning.h"

namespace atunner::agents {

class Workbench {
 public:
  /// All must outlive the object.
  Workbench(const RoundsRequest& request, jobs::RoundTuning& tuning, LanguageModel* model = nullptr,
            const jobs::KernelProfiler* profiler = nullptr)
      : request_(request), tuning_(tuning), model_(model), profiler_(profiler) {}

  const RoundsRequest& request() const { return request_; }
  jobs::RoundTuning& tuning() { return tuning_; }
  LanguageModel* model() { return model_; }  ///< nullptr: none
  /// Counters of a user's kernel; nullptr for operators and graphs, whose texts are not rewritten.
  const jobs::KernelProfiler* profiler() const { return profiler_; }
  const PerformanceAnalyst& analyst() const { return analyst_; }

  /// Judges the candidates, and returns their trials in the same order; a candidate without a trial
  /// (the budget is spent, or the user stops) is left out.
  Result<std::vector<Trial>> Judge(const std::vector<Candidate>& candidates);

 private:
  const RoundsRequest& request_;
  jobs::RoundTuning& tuning_;
  LanguageModel* model_;
  const jobs::KernelProfiler* profiler_;
  TrialAnalyst analyst_;
};

}  // namespace atunner::agents
