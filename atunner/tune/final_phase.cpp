#include "atunner/tune/final_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "atunner/search/strategies/finalists.h"
#include "atunner/tune/objectives.h"
#include "atunner/tune/stopwatch.h"

namespace atunner {
namespace {

// How many trials are verified beyond the finalists until one passes.
constexpr size_t kMaxVerifiedAgain = 5;
constexpr double kLaunchTimeoutSeconds = 60;
// With a budget of seconds, finalists beyond the first that passes have so long, s.
constexpr double kMostSeconds = 15;

}  // namespace

void FinalPhase::Report(std::string text) const {
  context_.log.Emit({.kind = TuneEvent::Kind::kFinalists, .text = std::move(text)});
}

/// The trials that have a value, best first; copies of others are left out.
std::vector<const Trial*> FinalPhase::Ranking() const {
  const Objective objective = context_.request.objectives.front();
  std::vector<const Trial*> ranking;
  for (const Trial& trial : context_.result.trials) {
    if (ValueOf(trial, objective) && trial.same_as == 0) ranking.push_back(&trial);
  }
  std::ranges::stable_sort(ranking, {},
                           [&](const Trial* trial) { return *ValueOf(*trial, objective); });
  return ranking;
}

size_t FinalPhase::CountOf(const std::vector<const Trial*>& ranking) const {
  const Objective objective = context_.request.objectives.front();
  std::vector<Contender> contenders;
  for (const Trial* trial : ranking) {
    const double error = objective == Objective::kTime ? RelativeError(*trial) : 0;
    contenders.push_back({*ValueOf(*trial, objective), error});
  }
  return FinalistCount(contenders);
}

/// nullopt when the trial has no value any more.
Result<std::optional<FinalPhase::Finalist>> FinalPhase::Examine(const Trial& trial) {
  Compiled compiled = context_.compiler.Compile(trial.candidate);
  if (!compiled.ok()) return std::nullopt;
  Finalist finalist{trial, *compiled.rendered, context_.compiler.KernelOf(std::move(compiled))};
  const JudgeOrder order{.time = true,
                         .thorough = true,
                         .energy = context_.request.WantsEnergy(),
                         .incumbent_ns = {},
                         .seed = context_.request.FinalSeed()};
  const double start = context_.clock.Now();
  ATUNNER_TRY(JudgeAnswer answer, context_.judge.Examine(finalist.kernel, order));
  context_.result.judge_seconds += context_.clock.Now() - start;
  finalist.trial.verdict = std::move(answer.verdict);
  finalist.trial.measurement = std::move(answer.measurement);
  finalist.trial.estimate = std::move(answer.estimate);
  if (ValueOf(finalist.trial, context_.request.objectives.front())) return finalist;
  const Verdict& verdict = finalist.trial.verdict;
  Report(
      fmt::format("trial {} is refused, {}: {}", trial.number, Name(verdict.kind), verdict.reason));
  if (!verdict.stands()) Record(trial.number, verdict);
  return std::nullopt;
}

void FinalPhase::CheckVirtually(int64_t number, const CandidateKernel& kernel, Verdict& verdict) {
  examined_.insert(number);
  const std::string undecided = virtual_check_.Examine(kernel, verdict);
  if (!verdict.stands()) {
    Report(fmt::format("trial {} is refused, {}", number, verdict.reason));
  } else if (!undecided.empty()) {
    Report(fmt::format("trial {} is not examined on the virtual GPU: {}", number, undecided));
    verdict.checks.push_back({.check = "virtual GPU",
                              .dims = context_.spec().dims,
                              .passed = true,
                              .detail = "not examined: " + undecided});
  }
}

void FinalPhase::CheckOthersVirtually(const std::vector<const Trial*>& ranking) {
  const bool users = context_.spec().oracle.kind == Oracle::Kind::kKernel;
  if (!users || !virtual_check_.examines()) return;
  for (const Trial* trial : ranking) {
    if (!trial->verdict.stands() || examined_.contains(trial->number)) continue;
    Compiled compiled = context_.compiler.Compile(trial->candidate);
    if (!compiled.ok()) continue;
    Verdict verdict = trial->verdict;
    CheckVirtually(trial->number, context_.compiler.KernelOf(std::move(compiled)), verdict);
    Record(trial->number, verdict);
  }
}

void FinalPhase::Record(int64_t number, const Verdict& verdict) {
  for (const Trial& trial : context_.result.trials) {
    if (trial.number != number && trial.same_as != number) continue;
    Trial& changed = context_.log.Change(trial.number);
    changed.verdict = verdict;
    if (verdict.stands()) continue;
    changed.measurement.reset();
    changed.estimate.reset();
  }
}

/// Makes the finalist the best one if it is. Returns false when it is refused.
bool FinalPhase::Accept(Finalist finalist) {
  TuneResult& result = context_.result;
  const Objective objective = context_.request.objectives.front();
  const bool leads = !result.best ||
                     *ValueOf(finalist.trial, objective) < *ValueOf(*result.best, objective);
  if (leads && virtual_check_.examines()) {
    CheckVirtually(finalist.trial.number, finalist.kernel, finalist.trial.verdict);
    Record(finalist.trial.number, finalist.trial.verdict);
  }
  if (!finalist.trial.verdict.stands()) return false;
  if (!leads) return true;
  result.best = std::move(finalist.trial);
  result.winner = std::move(finalist.kernel);
  result.winner_source = std::move(finalist.source);
  return true;
}

Status FinalPhase::Run() {
  const Stopwatch watch(context_.clock, context_.result.spent.finals);
  const std::vector<const Trial*> ranking = Ranking();
  if (ranking.empty()) return {};
  const size_t finalists = CountOf(ranking);
  Report(fmt::format("verifying the best {} again with new inputs", finalists));
  // The new task makes new inputs, and a new process where the judge has one.
  ATUNNER_RETURN_IF_ERROR(
      context_.judge.Begin({context_.spec(), context_.request.FinalSeed(), kLaunchTimeoutSeconds}));
  size_t survived = 0;
  const std::optional<double>& budget = context_.request.budget.seconds;
  const double begun = context_.clock.Now();
  const auto late = [&] {
    return budget && context_.clock.Now() - begun > std::min(kMostSeconds, *budget / 2);
  };
  // A trial that fails now passed the screening by mistake. The search for one that does not fail
  // goes on until one is found.
  const auto enough = [&](size_t tried) {
    return survived == finalists ||
           (survived > 0 && (tried >= finalists + kMaxVerifiedAgain || late()));
  };
  for (size_t i = 0; i < ranking.size() && !enough(i); ++i) {
    ATUNNER_TRY(std::optional<Finalist> finalist, Examine(*ranking[i]));
    if (finalist && Accept(*std::move(finalist))) ++survived;
  }
  CheckOthersVirtually(ranking);
  return context_.log.Persist();
}

}  // namespace atunner
