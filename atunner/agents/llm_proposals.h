// A language model as the author of kernels in a round.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/agents/idea.h"
#include "atunner/agents/request.h"
#include "atunner/base/clock.h"
#include "atunner/llm/budget.h"
#include "atunner/llm/proposal.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::agents {

/// The model of a request, with its budget, recording or replay.
struct LanguageModel {
  std::string name;  ///< "openai:gpt-5", "localhost:8000"
  std::unique_ptr<llm::BudgetedChat> chat;
};

/// nullptr when the request names no model. kInvalidInput for a wrong model, budget, key file or
/// recording. `clock` must outlive the result.
Result<std::unique_ptr<LanguageModel>> OpenLanguageModel(const LlmOptions& options, Clock& clock);

/// Everything that the model's next kernels depend on.
struct LlmTask {
  const ScheduleTemplate& schedule;
  const DeviceProfile& profile;
  const Version& parent;
  std::string facts;
  std::string bottleneck;
  std::vector<Idea> earlier;
  int kernels = 1;
};

/// Kernels by the model, and the idea with their title and reason. An answer that cannot be used is
/// sent back once with the reason. The idea's `reason` says why there is no kernel, if there is
/// none: a service that fails does not end the flow. kCancelled is an error.
struct LlmKernels {
  Idea idea;
  std::vector<Candidate> candidates;
  std::string stop;  ///< why the model is not asked again in this flow, or ""
};
Result<LlmKernels> AskForKernels(LanguageModel& model, Idea idea, const LlmTask& task,
                                 const std::stop_token& stop);

}  // namespace atunner::agents
