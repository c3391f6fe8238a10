// A request to optimise in rounds of ideas, and how it is kept with its flow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/jobs/runs/round_tuning.h"
#include "atunner/model/json/json.h"

namespace atunner::agents {

/// A language model that proposes kernels beside the rules.
struct LlmOptions {
  std::string model;   ///< "openai:MODEL", "anthropic:MODEL", "http://localhost:PORT/v1"; "": none
  std::string budget;  ///< "2usd,200k"; "": no limit
  std::string prices;  ///< dollars per million tokens of input and output: "1.25,10"
  Path record;         ///< file that exchanges are appended to
  Path replay;         ///< file that answers in the place of a model
};

struct RoundsRequest {
  jobs::OptimizeRequest optimize;
  jobs::SourceTask source;  ///< a user's kernel in place of the task
  int rounds = 3;
  int ideas = 8;            ///< of a round
  int implementations = 2;  ///< kernels of an idea
  double keep = 0.25;       ///< share of a round's ideas that is kept
  LlmOptions llm;
  /// Nodes before which the flow asks a person, for example "evaluate" or "finish".
  std::vector<std::string> pause_before;
};

/// kInvalidInput that names all fields that are out of range.
Status CheckRequest(const RoundsRequest& request);

Json ToJson(const RoundsRequest& request);
Result<RoundsRequest> RoundsRequestFromJson(const Json& json);

}  // namespace atunner::agents
