// The flags of optimisation in rounds, and how its results are printed.
#pragma once

#include <string>
#include <vector>

#include "atunner/agents/request.h"
#include "atunner/agents/rounds.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {

struct RoundsFlags {
  int rounds = 0;  ///< 0: an ordinary search
  int ideas = 8;
  int implementations = 2;
  double keep = 0.25;
  std::vector<std::string> pause_before;
  std::string llm;
  std::string llm_budget;
  std::string llm_prices;
  std::string llm_record;
  std::string llm_replay;

  agents::RoundsRequest Request(jobs::OptimizeRequest optimize) const;
};

void AddRounds(CLI::App* verb, RoundsFlags& flags);

/// Runs the request as a flow and prints its result. The exit code is 0 if there is a correct
/// kernel, or the flow waits for a person; 130 if it was cancelled; else 1.
Result<int> RunRounds(const Context& context, const agents::RoundsRequest& request);
/// The same for a flow that goes on.
Result<int> ResumeFlow(const Context& context, const std::string& flow, const std::string& answer);

}  // namespace atunner::cli
