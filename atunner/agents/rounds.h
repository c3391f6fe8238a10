// Optimisation in rounds of ideas: begins a flow, or goes on with one that was interrupted.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/agents/decision.h"
#include "atunner/agents/idea.h"
#include "atunner/agents/request.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/workflow/checkpoint.h"
#include "atunner/workflow/event.h"
#include "atunner/workflow/flow.h"

namespace atunner::agents {

/// The state of a flow, as values.
struct RoundsState {
  std::string flow;
  std::string operator_summary;
  std::string hardware_summary;
  double floor_ns = 0;
  std::vector<Idea> ideas;
  std::vector<Version> versions;
  std::vector<RoundRecord> rounds;
  Json result = nullptr;  ///< summary of the run, once it is finished
  std::string stop;
  int64_t llm_tokens = 0;  ///< spent on the language model
  std::string llm_stop;    ///< why the model was not asked any more, or ""
};

struct RoundsResult {
  workflow::Outcome::Kind kind = workflow::Outcome::Kind::kFinished;
  std::vector<workflow::Question> questions;
  RoundsState state;
  bool found() const { return state.result.is_object() && state.result.contains("best"); }
};

/// Doors and listeners of a job.
struct RoundsContext {
  jobs::Services& services;
  workflow::Checkpoints& checkpoints;
  const jobs::EventSink& events;
  workflow::FlowListener flow_events = nullptr;
  std::stop_token stop = {};
};

/// The flow has the id of the run in the store. An equal request goes on with its flow where it
/// ended; with `fresh` the flow and its run are removed before.
Result<RoundsResult> OptimizeInRounds(const RoundsRequest& request, const RoundsContext& context);

/// Goes on with a flow by its id. All questions get `answer`.
Result<RoundsResult> ResumeRounds(const std::string& flow, const Json& answer,
                                  const RoundsContext& context);

/// A new flow that begins with checkpoint `number` of another; ResumeRounds() runs it. The trials
/// of the old flow are known to it, so that equal kernels are not judged again. `changes` replaces
/// fields of the request: {"rounds": 5}. Returns its id.
Result<std::string> ForkRounds(workflow::Checkpoints& checkpoints, const std::string& flow,
                               int64_t number, const Json& changes);

/// A flow by its id, the unique beginning of one, or "last".
Result<workflow::FlowRecord> FindFlow(workflow::Checkpoints& checkpoints, const std::string& name);

/// The state at a checkpoint; without a number at the last.
Result<RoundsState> StateOf(workflow::Checkpoints& checkpoints, const std::string& flow,
                            std::optional<int64_t> number = std::nullopt);

}  // namespace atunner::agents
