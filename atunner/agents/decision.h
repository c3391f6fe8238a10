// What is kept of a round, and whether another one follows.
#pragma once

#include <string>
#include <vector>

#include "atunner/agents/idea.h"
#include "atunner/agents/request.h"
#include "atunner/model/json/json.h"

namespace atunner::agents {

/// One round, for the story and for the decision to stop.
struct RoundRecord {
  int round = 0;
  std::string bottleneck;
  std::string evidence;
  double before_ns = 0;  ///< fastest kernel before the round; 0: none
  double after_ns = 0;
  int ideas = 0;
  int kernels = 0;  ///< that were judged
  std::vector<std::string> kept;
  std::string stop;  ///< why no other round follows, or ""
};

Json ToJson(const RoundRecord& record);
RoundRecord RoundFromJson(const Json& json);

/// Gives an idea its outcome by the trials of its kernels.
void SetOutcome(Idea& idea, const std::vector<Trial>& trials);

/// Marks the ideas of a round: of those that are faster than the version they began with, the
/// fastest `keep` share of all ideas, rounded up, is kept.
void Decide(std::vector<Idea>& ideas, double keep);

/// Why the flow stops after the last of `rounds`, or "": the user, the budget, 95 % of the
/// roofline, gains below 0.1 % in two rounds, or the number of rounds.
std::string StopReason(const std::vector<RoundRecord>& rounds, const RoundsRequest& request,
                       double floor_ns, const std::string& tuning_stop);

}  // namespace atunner::agents
