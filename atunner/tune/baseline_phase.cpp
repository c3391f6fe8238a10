#include "atunner/tune/baseline_phase.h"

#include <utility>

#include "atunner/tune/stopwatch.h"

namespace atunner {
namespace {

constexpr int kPairs = 11;

}  // namespace

void BaselinePhase::Add(Baseline baseline) {
  context_.result.baselines.push_back(std::move(baseline));
  context_.log.Emit(
      {.kind = TuneEvent::Kind::kBaseline, .baseline = context_.result.baselines.back()});
}

Status BaselinePhase::Examine(Baseline& baseline, bool is_users) {
  ATUNNER_TRY(JudgeAnswer answer, context_.judge.Examine(*plain_, {.plain = !is_users,
                                                                   .incumbent_ns = {},
                                                                   .seed = context_.request.seed}));
  // The results of this kernel are the reference, so candidates could not be judged either.
  if (is_users && answer.verdict.kind == VerdictKind::kTimeout) {
    return Invalid("the kernel as given does not finish: " + answer.verdict.reason,
                   context_.spec().name, "make the problem smaller, or tune on the GPU itself");
  }
  baseline.verdict = std::move(answer.verdict);
  baseline.measurement = std::move(answer.measurement);
  baseline.estimate = std::move(answer.estimate);
  if (!baseline.verdict.stands()) baseline.note = baseline.verdict.reason;
  return {};
}

Status BaselinePhase::Measure() {
  const ScheduleTemplate& schedule = *context_.request.schedule;
  const auto plain = context_.request.plain ? schedule.Naive() : std::nullopt;
  if (!plain) return {};
  const Stopwatch watch(context_.clock, context_.result.spent.plain);
  ATUNNER_TRY(CompileOutcome outcome, context_.compiler.Compile(*plain));
  if (!outcome.ok())
    return Fail(ErrorCode::kInternal, "the plain kernel does not compile: " + outcome.error);
  // The plain kernel is valid at any size: it is verified at the smallest ones of the schedule.
  plain_ = CandidateKernel{*std::move(outcome.module), plain->plan,
                           schedule.CheckDims(schedule.Default())};
  const bool is_users = schedule.spec().oracle.kind == Oracle::Kind::kKernel;
  Baseline baseline;
  baseline.name = is_users ? "as given" : "naive";
  ATUNNER_RETURN_IF_ERROR(Examine(baseline, is_users));
  Add(std::move(baseline));
  return {};
}

Status BaselinePhase::Compare() {
  TuneResult& result = context_.result;
  if (!result.winner || !result.best->measurement) return {};
  const Stopwatch watch(context_.clock, result.spent.baselines);
  const uint64_t seed = context_.request.FinalSeed();
  for (Baseline& baseline : result.baselines) {
    if (!baseline.verdict.correct() || !plain_) continue;
    auto comparison = context_.judge.Compare(*plain_, *result.winner, kPairs, seed);
    if (comparison)
      baseline.comparison = *comparison;
    else
      baseline.note = comparison.error().ToString();
  }
  for (const std::string& name : context_.request.vendors) {
    // When a library crashes the runner, only its own baseline has no number.
    auto vendor = context_.judge.CompareVendor(name, *result.winner, kPairs, seed);
    if (!vendor) vendor = Baseline{.name = name, .note = vendor.error().ToString()};
    Add(*std::move(vendor));
  }
  return {};
}

}  // namespace atunner
