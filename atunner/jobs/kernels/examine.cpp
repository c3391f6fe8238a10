#include "atunner/jobs/kernels/examine.h"

#include <memory>
#include <utility>

#include "atunner/jobs/kernels/proposal.h"
#include "atunner/jobs/requests/examine_limit.h"
#include "atunner/judge/candidate_compiler.h"

namespace atunner::jobs {
namespace {

/// Judges one kernel that is compiled or refused. `plain`: see JudgeOrder.
Result<Examination> Judged(const CandidateCompiler& compiler, Compiled compiled, bool plain,
                           const KernelSpec& spec, const ExamineOptions& options,
                           const Target& target, Services& services) {
  Examination found;
  found.evidence = target.evidence();
  found.seed = options.seed;
  if (const auto refusal = compiled.Refusal()) {
    found.verdict = *refusal;
    return found;
  }
  if (!compiled.outcome) return std::unexpected(compiled.outcome.error());
  found.resources = compiled.outcome->module->kernels;
  const auto judge = services.devices.MakeJudge(target, ExamineSeconds(target));
  ATUNNER_RETURN_IF_ERROR(judge->Begin({spec, options.seed}));
  JudgeOrder order{.time = options.time, .thorough = options.thorough, .incumbent_ns = {}};
  order.seed = options.seed;
  order.plain = plain;
  ATUNNER_TRY(JudgeAnswer answer, judge->Examine(compiler.KernelOf(std::move(compiled)), order));
  found.verdict = std::move(answer.verdict);
  found.measurement = std::move(answer.measurement);
  found.estimate = std::move(answer.estimate);
  return found;
}

}  // namespace

std::optional<double> Examination::Ns() const {
  if (!verdict.stands()) return std::nullopt;
  Trial trial;
  trial.measurement = measurement;
  trial.estimate = estimate;
  return trial.ObjectiveNs();
}

Result<CompiledConfiguration> CompileConfiguration(const ScheduleTemplate& schedule,
                                                   const std::string& configuration,
                                                   const Target& target, Services& services) {
  ATUNNER_TRY(const Configuration chosen, ConfigurationOf(schedule, configuration));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  CompiledConfiguration compiled;
  compiled.configuration = schedule.space().Describe(chosen);
  ATUNNER_TRY(compiled.kernel, schedule.Render(chosen));
  const CandidateCompiler candidates(schedule, *compiler, target.profile.Arch());
  ATUNNER_TRY(compiled.outcome, candidates.Compile(compiled.kernel));
  return compiled;
}

Result<Examination> Examine(const ScheduleTemplate& schedule, const std::string& configuration,
                            const ExamineOptions& options, const Target& target,
                            Services& services) {
  ATUNNER_TRY(Configuration chosen, ConfigurationOf(schedule, configuration));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  const CandidateCompiler candidates(schedule, *compiler, target.profile.Arch());
  const std::string described = schedule.space().Describe(chosen);
  Compiled compiled = candidates.Compile(
      MakeCandidate(schedule.space(), std::move(chosen), {"user", ""}));
  ATUNNER_TRY(Examination found, Judged(candidates, std::move(compiled), false, schedule.spec(),
                                        options, target, services));
  found.configuration = described;
  return found;
}

Result<std::optional<Examination>> ExamineBaseline(const ScheduleTemplate& schedule,
                                                   const ExamineOptions& options,
                                                   const Target& target, Services& services) {
  auto naive = schedule.Naive();
  if (!naive) return std::nullopt;
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  const CandidateCompiler candidates(schedule, *compiler, target.profile.Arch());
  Compiled compiled = candidates.Compile(MakeSourceCandidate(*std::move(naive), {"user", ""}));
  return Judged(candidates, std::move(compiled), true, schedule.spec(), options, target, services);
}

}  // namespace atunner::jobs
