#include "atunner/tune/part_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace atunner {
namespace {

constexpr double kForTheWhole = 0.15;  // share of the budget
constexpr int64_t kFewestTrials = 2;
constexpr double kLaunchNs = 4000;  // a part takes at least this, whatever it moves
constexpr double kClose = 1.03;     // a part's second best may be the best beside other parts
constexpr size_t kMostChoices = 2;

}  // namespace

PartChoices::PartChoices(const ScheduleTemplate& whole, const PartitionedSchedule& divided,
                         std::vector<std::vector<Configuration>> choices)
    : whole_(whole), divided_(divided), choices_(std::move(choices)) {
  const std::vector<const ScheduleTemplate*> parts = divided_.Parts();
  for (size_t i = 0; i < choices_.size(); ++i) {
    std::vector<Value> values;
    for (const Configuration& choice : choices_[i])
      values.emplace_back(parts[i]->space().Describe(choice));
    space_.parameters.push_back(
        {fmt::format("part{}", i + 1), std::move(values),
         fmt::format("configuration of the part '{}'", parts[i]->spec().name)});
  }
}

std::vector<Configuration> PartChoices::Chosen(const Configuration& configuration) const {
  std::vector<Configuration> chosen;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const auto& values = space_.parameters[i].values;
    const auto at = std::ranges::find(values, configuration.values[i]) - values.begin();
    chosen.push_back(choices_[i][static_cast<size_t>(at)]);
  }
  return chosen;
}

Result<RenderedKernel> PartChoices::Render(const Configuration& configuration) const {
  return divided_.RenderParts(Chosen(configuration));
}

Configuration PartChoices::Default() const {
  Configuration first;
  for (const Parameter& parameter : space_.parameters)
    first.values.push_back(parameter.values.front());
  return first;
}

PartBudgets DivideBudget(const Budget& budget, const std::vector<double>& least_ns) {
  // A part that takes ten times as long gets more trials, but not ten times as many.
  const auto weight = [](double ns) { return std::sqrt(std::max(ns, kLaunchNs)); };
  const double all = std::accumulate(least_ns.begin(), least_ns.end(), 0.0,
                                     [&](double sum, double ns) { return sum + weight(ns); });
  const auto share = [&](double part, int64_t fewest) {
    Budget one;
    if (budget.seconds) one.seconds = *budget.seconds * part;
    if (budget.trials)
      one.trials = std::max(
          fewest, static_cast<int64_t>(std::floor(static_cast<double>(*budget.trials) * part)));
    return one;
  };
  PartBudgets budgets{{}, share(kForTheWhole, 1)};
  for (const double ns : least_ns)
    budgets.parts.push_back(share((1 - kForTheWhole) * weight(ns) / all, kFewestTrials));
  return budgets;
}

std::vector<Configuration> BestOf(const TuneResult& result) {
  if (!result.best || result.best->candidate.configuration() == nullptr) return {};
  std::vector<const Trial*> ranking;
  for (const Trial& trial : result.trials) {
    if (trial.ObjectiveNs() && trial.same_as == 0 && trial.candidate.configuration() != nullptr)
      ranking.push_back(&trial);
  }
  std::ranges::stable_sort(ranking, {}, [](const Trial* trial) { return *trial->ObjectiveNs(); });
  std::vector<Configuration> best = {result.best->configuration()};
  for (const Trial* trial : ranking) {
    if (best.size() == kMostChoices ||
        *trial->ObjectiveNs() > kClose * *ranking.front()->ObjectiveNs())
      break;
    if (trial->configuration() != best.front()) best.push_back(trial->configuration());
  }
  return best;
}

}  // namespace atunner
