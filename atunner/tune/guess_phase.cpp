#include "atunner/tune/guess_phase.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "atunner/tune/stopwatch.h"
#include "atunner/tune/trial_log.h"

namespace atunner {
namespace {

constexpr double kLaunchTimeoutSeconds = 20;

}  // namespace

bool GuessPhase::Ended() {
  TuneResult& result = context_.result;
  const auto& trials = context_.request.budget.trials;
  if (result.winner)
    result.stop_reason = "the first right kernel";
  else if (context_.stop.stop_requested())
    result.stop_reason = "stopped by the user";
  else if (trials && static_cast<int64_t>(result.trials.size()) >= *trials)
    result.stop_reason = "trial budget spent";
  return !result.stop_reason.empty();
}

Status GuessPhase::Run() {
  const Stopwatch watch(context_.clock, context_.result.spent.search);
  ATUNNER_RETURN_IF_ERROR(TakeEarlier());
  while (!Ended()) {
    std::vector<Candidate> next = proposals_.Ask(1);
    if (next.empty()) {
      context_.result.stop_reason = "every configuration was tried";
      break;
    }
    ATUNNER_RETURN_IF_ERROR(Try(std::move(next.front())));
    ATUNNER_RETURN_IF_ERROR(context_.log.Persist());
  }
  return {};
}

Status GuessPhase::TakeEarlier() {
  const auto right = std::ranges::find_if(
      context_.result.trials, [](const Trial& trial) { return trial.verdict.stands(); });
  if (right == context_.result.trials.end()) return {};
  Compiled compiled = context_.compiler.Compile(right->candidate, context_.stop);
  if (!compiled.outcome) return std::unexpected(compiled.outcome.error());
  if (compiled.ok()) Accept(std::move(compiled), *right);
  return {};
}

Status GuessPhase::Try(Candidate candidate) {
  Compiled compiled = context_.compiler.Compile(candidate, context_.stop);
  Trial trial;
  trial.candidate = std::move(candidate);
  if (auto refusal = compiled.Refusal()) {
    trial.verdict = *std::move(refusal);
  } else if (!compiled.outcome) {
    return std::unexpected(compiled.outcome.error());
  } else {
    const CompiledModule& module = *compiled.outcome->module;
    trial.resources = module.kernels;
    trial.binary = module.binary;
    trial.compile_seconds = module.compile_seconds;
    context_.result.compile_seconds += trial.compile_seconds;
    const CandidateKernel kernel = context_.compiler.KernelOf(compiled);
    trial.memory_bytes = MemoryOf(kernel, context_.spec());
    ATUNNER_RETURN_IF_ERROR(Judge(kernel, trial));
  }
  proposals_.Observe(trial);
  context_.log.Add(trial);
  if (trial.verdict.stands()) Accept(std::move(compiled), context_.result.trials.back());
  return {};
}

Status GuessPhase::Judge(const CandidateKernel& kernel, Trial& trial) {
  if (context_.request.thoroughness == Thoroughness::kUnchecked) {
    trial.verdict.kind = VerdictKind::kUnchecked;
    trial.verdict.reason = "it was only compiled, as was asked for";
    trial.verdict.coverage = {.executed = 0, .compared = 0};
    return {};
  }
  const uint64_t seed = context_.request.seed;
  if (!std::exchange(judges_, true))
    ATUNNER_RETURN_IF_ERROR(context_.judge.Begin({context_.spec(), seed, kLaunchTimeoutSeconds}));
  const double start = context_.clock.Now();
  // A prediction is cheap beside the verification that it follows; a measurement is not.
  ATUNNER_TRY(JudgeAnswer answer,
              context_.judge.Examine(
                  kernel, {.time = context_.request.in_order, .incumbent_ns = {}, .seed = seed}));
  TakeAnswer(std::move(answer), context_.clock.Now() - start, trial);
  context_.result.judge_seconds += trial.judge_seconds;
  context_.result.spent.verifying += trial.verify_seconds;
  context_.result.spent.timing += trial.timing_seconds;
  return {};
}

void GuessPhase::Accept(Compiled compiled, const Trial& trial) {
  TuneResult& result = context_.result;
  result.best = trial;
  result.winner_source = *compiled.rendered;
  result.winner = context_.compiler.KernelOf(std::move(compiled));
}

}  // namespace atunner
