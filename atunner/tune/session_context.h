// The objects that all phases of a tuning session use.
#pragma once

#include <stop_token>

#include "atunner/base/clock.h"
#include "atunner/judge/candidate_compiler.h"
#include "atunner/judge/judge.h"
#include "atunner/tune/trial_log.h"
#include "atunner/tune/tune_request.h"
#include "atunner/tune/tune_result.h"

namespace atunner {

struct SessionContext {
  const TuneRequest& request;
  const CandidateCompiler& compiler;
  Judge& judge;  ///< judges baselines and finalists
  const Clock& clock;
  const std::stop_token& stop;
  TrialLog& log;
  TuneResult& result;

  const KernelSpec& spec() const { return request.schedule->spec(); }
};

}  // namespace atunner
