// Chooses how collectives run from a measured table, and never against the evidence.
//
// NCCL's own choice is replaced only if another one beat it in the final turns: its median is at
// least kLeastGain lower, and it was faster in so many turns that a fair coin would do so with a
// probability of at most kFalseGain, divided by the number of contenders (sign test with
// Bonferroni's correction). The contenders were picked by other samples (the screen stage), so that
// luck in picking them does not count as a gain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "atunner/model/json/json.h"
#include "atunner/planning/comm/comm_table.h"
#include "atunner/planning/comm/tuner_rules.h"

namespace atunner::planning {

inline constexpr double kLeastGain = 0.01;
inline constexpr double kFalseGain = 0.01;

/// What was chosen for one collective and size.
struct CommDecision {
  Collective collective = Collective::kAllReduce;
  int64_t bytes = 0;
  std::optional<CommChoice> choice;     ///< empty: NCCL's own stays
  std::optional<CommChoice> runner_up;  ///< fastest contender where none was good enough
  double default_us = 0;                ///< median of the final turns
  double chosen_us = 0;                 ///< as default_us if NCCL's own stays
  double noise = 0;  ///< half the spread of the middle half of NCCL's own samples, by its median
  int wins = 0, turns = 0;  ///< turns in which the contender was faster, of all
  double gain() const { return 1 - chosen_us / default_us; }
};

/// Probability that a fair coin falls heads at least `wins` times of `turns`.
double SignTest(int wins, int turns);

/// A decision for each collective and size that has final rows, in order of both. kInvalidInput if
/// there are none, or a size lacks NCCL's own row.
Result<std::vector<CommDecision>> ChooseComm(const CommTable& table);

/// Rules for `ranks` GPUs of one node. A choice holds from the geometric mean with the next smaller
/// measured size up to that with the next larger one; beyond the measured sizes there is no rule.
std::vector<TunerRule> RulesOf(const std::vector<CommDecision>& decisions, int ranks);

Json ToJson(const CommDecision& decision);

/// A line for each decision: times, gain, noise, turns won.
std::string TextOf(const std::vector<CommDecision>& decisions);

}  // namespace atunner::planning
