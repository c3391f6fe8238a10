#include "atunner/planning/comm/comm_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace atunner::planning {
namespace {

using Size = std::pair<Collective, int64_t>;

int Wins(const CommRow& contender, const CommRow& own) {
  int wins = 0;
  for (size_t i = 0; i < std::min(contender.us.size(), own.us.size()); ++i)
    wins += contender.us[i] < own.us[i] ? 1 : 0;
  return wins;
}

double NoiseOf(const CommRow& row) {
  std::vector<double> sorted = row.us;
  std::ranges::sort(sorted);
  const double spread = sorted[sorted.size() * 3 / 4] - sorted[sorted.size() / 4];
  return spread / 2 / MedianUs(row);
}

CommDecision Decide(const CommRow& own, const std::vector<const CommRow*>& contenders) {
  CommDecision decision{.collective = own.collective, .bytes = own.bytes};
  decision.default_us = decision.chosen_us = MedianUs(own);
  decision.noise = NoiseOf(own);
  if (contenders.empty()) return decision;
  const CommRow& best = **std::ranges::min_element(
      contenders, {}, [](const CommRow* row) { return MedianUs(*row); });
  decision.turns = static_cast<int>(std::min(best.us.size(), own.us.size()));
  decision.wins = Wins(best, own);
  decision.runner_up = best.choice;
  const bool proven = SignTest(decision.wins, decision.turns) <=
                      kFalseGain / static_cast<double>(contenders.size());
  if (!proven || MedianUs(best) > (1 - kLeastGain) * decision.default_us) return decision;
  decision.choice = best.choice;
  decision.chosen_us = MedianUs(best);
  return decision;
}

uint64_t Middle(int64_t a, int64_t b) {
  return static_cast<uint64_t>(std::sqrt(static_cast<double>(a) * static_cast<double>(b)));
}

/// Joins neighbours with the same choice.
void Append(std::vector<TunerRule>& rules, const TunerRule& rule) {
  if (!rules.empty()) {
    TunerRule& last = rules.back();
    if (last.collective == rule.collective && last.choice == rule.choice &&
        last.max_bytes + 1 == rule.min_bytes) {
      last.max_bytes = rule.max_bytes;
      return;
    }
  }
  rules.push_back(rule);
}

}  // namespace

double SignTest(int wins, int turns) {
  double probability = 0;
  for (int k = wins; k <= turns; ++k)
    probability += std::exp(std::lgamma(turns + 1) - std::lgamma(k + 1) -
                            std::lgamma(turns - k + 1) - turns * std::log(2.0));
  return std::min(1.0, probability);
}

Result<std::vector<CommDecision>> ChooseComm(const CommTable& table) {
  std::map<Size, std::pair<const CommRow*, std::vector<const CommRow*>>> sizes;
  for (const CommRow& row : table.rows) {
    if (row.stage != CommStage::kFinal) continue;
    auto& [own, contenders] = sizes[{row.collective, row.bytes}];
    if (row.choice)
      contenders.push_back(&row);
    else
      own = &row;
  }
  if (sizes.empty()) return Invalid("it has no rows of the final stage", "the table");
  std::vector<CommDecision> decisions;
  for (const auto& [size, rows] : sizes) {
    if (rows.first == nullptr)
      return Invalid(fmt::format("{} of {} bytes has no row of NCCL's own choice", Name(size.first),
                                 size.second),
                     "the table");
    decisions.push_back(Decide(*rows.first, rows.second));
  }
  return decisions;
}

std::vector<TunerRule> RulesOf(const std::vector<CommDecision>& decisions, int ranks) {
  std::vector<TunerRule> rules;
  for (size_t i = 0; i < decisions.size(); ++i) {
    const CommDecision& at = decisions[i];
    if (!at.choice) continue;
    const bool before = i > 0 && decisions[i - 1].collective == at.collective;
    const bool after = i + 1 < decisions.size() && decisions[i + 1].collective == at.collective;
    const auto bytes = static_cast<uint64_t>(at.bytes);
    Append(rules, {.collective = at.collective,
                   .min_bytes = before ? Middle(decisions[i - 1].bytes, at.bytes) + 1 : bytes,
                   .max_bytes = after ? Middle(at.bytes, decisions[i + 1].bytes) : bytes,
                   .choice = *at.choice,
                   .nodes = 1,
                   .ranks = ranks});
  }
  return rules;
}

Json ToJson(const CommDecision& decision) {
  Json json{{"collective", Name(decision.collective)},
            {"bytes", decision.bytes},
            {"choice", decision.choice ? ToString(*decision.choice) : "default"},
            {"default_us", decision.default_us},
            {"chosen_us", decision.chosen_us},
            {"gain", decision.gain()},
            {"noise", decision.noise},
            {"wins", decision.wins},
            {"turns", decision.turns}};
  if (decision.runner_up) json["best_contender"] = ToString(*decision.runner_up);
  return json;
}

std::string TextOf(const std::vector<CommDecision>& decisions) {
  std::string text = fmt::format("{:<14}{:>11}{:>12}{:>12}{:>8}{:>8}{:>8}  {}\n", "collective",
                                 "bytes", "default us", "chosen us", "gain", "noise", "won",
                                 "choice");
  for (const CommDecision& each : decisions)
    text += fmt::format("{:<14}{:>11}{:>12.2f}{:>12.2f}{:>7.1f}%{:>7.1f}%{:>8}  {}\n",
                        Name(each.collective), each.bytes, each.default_us, each.chosen_us,
                        100 * each.gain(), 100 * each.noise,
                        fmt::format("{}/{}", each.wins, each.turns),
                        each.choice ? ToString(*each.choice) : "NCCL's own");
  return text;
}

}  // namespace atunner::planning
