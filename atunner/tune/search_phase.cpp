#include "atunner/tune/search_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "atunner/tune/objectives.h"
#include "atunner/tune/stopwatch.h"
#include "atunner/tune/trial_log.h"

namespace atunner {
namespace {

// Times this close to the physical floor leave nothing worth searching for.
constexpr double kCloseToFloor = 1.04;
// How many candidates compile before the ratio of compiling to judging time is known.
constexpr double kFirstAhead = 4;
constexpr double kSlack = 1.5;        // compile times vary
constexpr double kMostPerThread = 2;  // one compiling, one waiting for the judge
constexpr std::chrono::milliseconds kPoll{1};
// What a baseline takes beyond this counts as searching, s.
constexpr double kFreeBaselineSeconds = 5;
// The search keeps this part of its seconds in any case.
constexpr double kLeastOfBudget = 0.25;

}  // namespace

SearchPhase::SearchPhase(const SessionContext& context, JudgePool& judges, Proposals& proposals)
    : context_(context),
      request_(context.request),
      result_(context.result),
      judges_(judges),
      proposals_(proposals),
      ahead_([&context](const Candidate& candidate, const std::stop_token& stop) {
        return context.compiler.Compile(candidate, stop);
      }) {}

std::string SearchPhase::StopReason() const {
  if (context_.stop.stop_requested()) return "stopped by the user";
  const Budget& budget = request_.budget;
  if (budget.trials && static_cast<int64_t>(result_.trials.size()) >= *budget.trials)
    return "trial budget spent";
  // A short baseline does not count: a plain kernel of half a second would leave nothing of a short
  // budget. The first candidate, which is the schedule's own choice, is always awaited, although
  // others may be compiled sooner.
  const bool is_late = budget.seconds &&
                       context_.log.RunSeconds() - started_ >= SecondsOf(*budget.seconds);
  if (is_late && !proposals_.awaits_first()) return "time budget spent";
  const auto best = request_.MinimisesTimeAlone() ? context_.log.BestNs() : std::nullopt;
  if (best && *best <= kCloseToFloor * result_.floor_ns) return "within 4 % of the physical floor";
  return "";
}

/// The seconds of the budget that are left to the search.
double SearchPhase::SecondsOf(double budget) const {
  const double beyond = std::max(0.0, started_ - kFreeBaselineSeconds);
  return std::max(kLeastOfBudget * budget, budget - beyond);
}

/// How many candidates are compiled ahead of the judges: as many as compiling needs to keep up with
/// them. At the beginning, when every result counts, fewer.
size_t SearchPhase::Depth() const {
  const auto threads = static_cast<double>(std::max(1, request_.compile_threads));
  const auto judges = static_cast<double>(judges_.count());
  const double judging = result_.judge_seconds - result_.spent.remeasuring;
  double wanted = kFirstAhead;
  if (judging > 0) wanted = 1 + kSlack * judges * result_.compile_seconds / judging;
  const double first = std::max(kFirstAhead, threads / 2);
  if (proposals_.learns())
    wanted = std::min(wanted, std::max(first, 0.5 * static_cast<double>(result_.trials.size())));
  const double most = request_.in_order ? threads : kMostPerThread * threads;
  return static_cast<size_t>(
      std::max(judges, std::min(most, std::max(judges + 1, std::ceil(wanted)))));
}

/// How many candidates may be compiled or wait to be judged: the depth, or what the budget leaves.
size_t SearchPhase::Room() const {
  if (!request_.budget.trials) return Depth();
  const auto used = static_cast<int64_t>(result_.trials.size() + judges_.busy()) -
                    (remeasured_ ? 1 : 0);
  const int64_t left = std::max<int64_t>(0, *request_.budget.trials - used);
  return std::min(Depth(), static_cast<size_t>(left));
}

void SearchPhase::Refill() {
  const size_t room = Room();
  const size_t compiling = ahead_.size() - ahead_.ready();
  const auto threads = static_cast<size_t>(std::max(1, request_.compile_threads));
  if (ahead_.size() >= room || compiling >= threads) return;
  const Stopwatch watch(context_.clock, result_.spent.for_proposals);
  for (Candidate& candidate : proposals_.Ask(std::min(room - ahead_.size(), threads - compiling)))
    ahead_.Submit(std::move(candidate));
}

JudgeOrder SearchPhase::ScreeningOrder() const {
  JudgeOrder order;
  order.energy = request_.WantsEnergy();
  order.seed = request_.seed;
  // With several objectives a slow kernel may be good by another one, so nothing is abandoned.
  if (request_.MinimisesTimeAlone()) order.incumbent_ns = context_.log.BestNs();
  return order;
}

void SearchPhase::OnTrial(Trial trial) {
  const Stopwatch watch(context_.clock, result_.spent.for_proposals);
  proposals_.Observe(trial);
  context_.log.Add(std::move(trial));
}

/// Makes the candidate a trial at once where no judge is needed, else starts a judge.
Status SearchPhase::StartCompiled(Compiled compiled) {
  Trial trial;
  trial.candidate = compiled.candidate;
  if (auto refusal = compiled.Refusal()) {
    trial.verdict = *std::move(refusal);
    OnTrial(std::move(trial));
    return {};
  }
  if (!compiled.outcome) return std::unexpected(compiled.outcome.error());
  const CompiledModule& module = *compiled.outcome->module;
  trial.resources = module.kernels;
  trial.binary = module.binary;
  trial.compile_seconds = module.compile_seconds;
  result_.compile_seconds += trial.compile_seconds;
  CandidateKernel kernel = context_.compiler.KernelOf(std::move(compiled));
  trial.memory_bytes = MemoryOf(kernel, context_.spec());
  StartJudging(std::move(trial), std::move(kernel));
  return {};
}

void SearchPhase::StartJudging(Trial trial, CandidateKernel kernel) {
  const int64_t ticket = ++tickets_;
  // An equal kernel that is still being judged is not waited for.
  const auto equal = numbers_.find(known_kernels_.FirstOf(kernel, context_.spec(), ticket));
  if (equal != numbers_.end()) {
    const Trial& first = context_.log.At(equal->second);
    trial.same_as = equal->second;
    trial.verdict = first.verdict;
    trial.measurement = first.measurement;
    trial.estimate = first.estimate;
    trial.note = fmt::format("same binary and launch as trial {}", equal->second);
    OnTrial(std::move(trial));
    return;
  }
  trial.number = ticket;
  judges_.Start({std::move(trial), std::make_shared<const CandidateKernel>(std::move(kernel))},
                ScreeningOrder());
}

Status SearchPhase::StartReady() {
  while (judges_.HasFree() && ahead_.ready() > 0 && StopReason().empty()) {
    auto compiled = ahead_.Take([] { return true; }, 0);
    if (compiled) ATUNNER_RETURN_IF_ERROR(StartCompiled(*std::move(compiled)));
  }
  return {};
}

/// Measures one of the leaders again. Returns false when none is worth it.
bool SearchPhase::StartRemeasuring() {
  if (request_.in_order || remeasured_ || request_.objectives.front() != Objective::kTime)
    return false;
  remeasured_ = leaders_.WorthMeasuring(result_.trials);
  if (!remeasured_) return false;
  JudgeOrder order;
  order.seed = request_.seed;
  judges_.Start({context_.log.At(*remeasured_), leaders_.KernelOf(*remeasured_), true}, order);
  return true;
}

void SearchPhase::CountTime(const Judged& judged) {
  const JudgeAnswer& answer = *judged.answer;
  TimeSpent& spent = result_.spent;
  result_.judge_seconds += judged.seconds;
  spent.verifying += answer.verify_seconds;
  spent.timing += answer.timing_seconds;
  spent.handing_over += judged.seconds - answer.verify_seconds - answer.timing_seconds;
  if (judged.job.remeasured) spent.remeasuring += judged.seconds;
}

void SearchPhase::OnResult(Judged judged) {
  Trial trial = std::move(judged.job.trial);
  TakeAnswer(*std::move(judged.answer), judged.seconds, trial);
  numbers_[trial.number] = static_cast<int64_t>(result_.trials.size()) + 1;
  OnTrial(std::move(trial));
  if (!request_.in_order) leaders_.Keep(result_.trials.back(), std::move(judged.job.candidate));
}

/// The second result of a leader. A leader that fails now loses its time.
void SearchPhase::OnRemeasured(Judged judged) {
  remeasured_.reset();
  Trial& trial = context_.log.Change(judged.job.trial.number);
  JudgeAnswer& answer = *judged.answer;
  if (answer.verdict.correct() && answer.measurement) {
    trial.measurement = Joined(*trial.measurement, *std::move(answer.measurement));
    proposals_.Observe(trial);
    return;
  }
  trial.verdict = std::move(answer.verdict);
  trial.measurement.reset();
}

/// Takes a result. Out of order, the device gets its next candidate before the result is stored.
Status SearchPhase::TakeResult() {
  Judged judged = judges_.Take();
  if (!judged.answer) return std::unexpected(judged.answer.error());
  CountTime(judged);
  if (judged.job.remeasured)
    OnRemeasured(std::move(judged));
  else
    OnResult(std::move(judged));
  if (!request_.in_order) ATUNNER_RETURN_IF_ERROR(StartReady());
  return context_.log.Persist();
}

/// Keeps the compilers busy until a judge has a result. Returns false when a judge without work can
/// get some before that.
bool SearchPhase::AwaitResult() {
  if (request_.in_order) return true;
  while (!judges_.IsReady(kPoll)) {
    Refill();
    if (judges_.HasFree() && ahead_.ready() > 0) return false;
  }
  return true;
}

/// Starts what can be started, or waits for a judge or a compiler.
Status SearchPhase::NextStep() {
  if (!judges_.HasFree() || ahead_.size() == 0 || judges_.IsReady())
    return AwaitResult() ? TakeResult() : StartReady();
  if (ahead_.ready() == 0 && StartRemeasuring()) return {};
  const Stopwatch watch(context_.clock, result_.spent.for_compile);
  std::optional<Compiled> compiled = ahead_.Take(
      [&] { return judges_.IsReady() || !StopReason().empty(); }, request_.in_order ? 1 : 0);
  if (!compiled) return {};
  ATUNNER_RETURN_IF_ERROR(StartCompiled(*std::move(compiled)));
  return context_.log.Persist();
}

Status SearchPhase::Run() {
  started_ = context_.log.SessionSeconds();
  const Stopwatch watch(context_.clock, result_.spent.search);
  while (true) {
    result_.stop_reason = StopReason();
    if (!result_.stop_reason.empty()) break;
    Refill();
    if (ahead_.size() == 0 && judges_.busy() == 0) {
      result_.stop_reason = "every configuration was tried";
      break;
    }
    ATUNNER_RETURN_IF_ERROR(NextStep());
  }
  while (judges_.busy() > 0) ATUNNER_RETURN_IF_ERROR(TakeResult());
  return context_.log.Persist();
}

}  // namespace atunner
