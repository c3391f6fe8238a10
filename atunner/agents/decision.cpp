#include "atunner/agents/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace atunner::agents {
namespace {

constexpr double kCloseToRoofline = 0.95;
constexpr double kLeastGain = 0.001;

bool IsFaster(const Idea& idea) {
  return idea.best_ns && (!idea.parent_ns || *idea.best_ns < *idea.parent_ns);
}

/// "1.25x over r1.2".
std::string GainText(const Idea& idea) {
  if (!idea.parent_ns || idea.parent.empty()) return fmt::format("{:.4g} us", *idea.best_ns / 1e3);
  return fmt::format("{:.2f}x over {}", *idea.parent_ns / *idea.best_ns, idea.parent);
}

bool HasDriedUp(const std::vector<RoundRecord>& rounds) {
  if (rounds.size() < 2) return false;
  return std::ranges::all_of(rounds.end() - 2, rounds.end(), [](const RoundRecord& round) {
    return round.before_ns > 0 && round.after_ns > (1 - kLeastGain) * round.before_ns;
  });
}

}  // namespace

Json ToJson(const RoundRecord& record) {
  return {{"round", record.round},       {"bottleneck", record.bottleneck},
          {"evidence", record.evidence}, {"before_ns", record.before_ns},
          {"after_ns", record.after_ns}, {"ideas", record.ideas},
          {"kernels", record.kernels},   {"kept", record.kept},
          {"stop", record.stop}};
}

RoundRecord RoundFromJson(const Json& json) {
  RoundRecord record;
  record.round = json.value("round", 0);
  record.bottleneck = json.value("bottleneck", "");
  record.evidence = json.value("evidence", "");
  record.before_ns = json.value("before_ns", 0.0);
  record.after_ns = json.value("after_ns", 0.0);
  record.ideas = json.value("ideas", 0);
  record.kernels = json.value("kernels", 0);
  record.kept = json.value("kept", std::vector<std::string>());
  record.stop = json.value("stop", "");
  return record;
}

void SetOutcome(Idea& idea, const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  const Trial* refused = nullptr;
  for (const Trial& trial : trials) {
    idea.candidates.push_back(trial.candidate.id.ToHex());
    const auto ns = trial.ObjectiveNs();
    if (!ns) refused = &trial;
    if (ns && (best == nullptr || *ns < *best->ObjectiveNs())) best = &trial;
  }
  if (best != nullptr) {
    idea.best = best->candidate.id.ToHex();
    idea.best_ns = best->ObjectiveNs();
    idea.status = "dropped";
    idea.reason = IsFaster(idea) ? GainText(idea) : "not faster: " + GainText(idea);
  } else {
    idea.status = "failed";
    if (refused != nullptr)
      idea.reason = fmt::format("{}: {}", Name(refused->verdict.kind), refused->verdict.reason);
    else if (idea.reason.empty())
      idea.reason = "no new kernel of it was judged";
  }
}

void Decide(std::vector<Idea>& ideas, double keep) {
  std::vector<Idea*> faster;
  for (Idea& idea : ideas) {
    if (idea.status == "dropped" && IsFaster(idea)) faster.push_back(&idea);
  }
  std::ranges::stable_sort(faster, {}, [](const Idea* idea) { return *idea->best_ns; });
  const auto most = static_cast<size_t>(
      std::ceil(keep * static_cast<double>(std::max<size_t>(1, ideas.size()))));
  for (size_t i = 0; i < faster.size(); ++i) {
    if (i < most)
      faster[i]->status = "kept";
    else
      faster[i]->reason += fmt::format("; only {} of the round are kept", most);
  }
}

std::string StopReason(const std::vector<RoundRecord>& rounds, const RoundsRequest& request,
                       double floor_ns, const std::string& tuning_stop) {
  if (tuning_stop == "stopped by the user" || tuning_stop.ends_with("budget spent"))
    return tuning_stop;
  const RoundRecord& last = rounds.back();
  if (last.after_ns > 0 && floor_ns >= kCloseToRoofline * last.after_ns)
    return fmt::format("{:.0f} % of the roofline are reached", 100 * floor_ns / last.after_ns);
  if (HasDriedUp(rounds)) return "two rounds gained less than 0.1 % each";
  if (last.round >= request.rounds)
    return request.rounds == 1 ? "1 round is done"
                               : fmt::format("{} rounds are done", request.rounds);
  return "";
}

}  // namespace atunner::agents
