#include "atunner/judge/candidate_compiler.h"

#include <utility>
#include <vector>

namespace atunner {

std::optional<Verdict> Compiled::Refusal() const {
  if (!rendered) return Verdict{VerdictKind::kCompileError, rendered.error().ToString(), {}, false};
  if (!outcome || outcome->ok()) return std::nullopt;
  const VerdictKind kind = outcome->timed_out ? VerdictKind::kTimeout : VerdictKind::kCompileError;
  return Verdict{kind, outcome->error, {}, false};
}

Result<CompileOutcome> CandidateCompiler::Compile(const RenderedKernel& kernel,
                                                  const std::stop_token& stop) const {
  return compiler_.Compile({kernel.source, EntriesOf(kernel.plan), arch_}, stop);
}

Compiled CandidateCompiler::Compile(const Candidate& candidate, const std::stop_token& stop) const {
  const Configuration* configuration = candidate.configuration();
  Compiled compiled{candidate,
                    configuration != nullptr ? schedule_.Render(*configuration)
                                             : Result<RenderedKernel>(*candidate.kernel()),
                    CompileOutcome{}};
  if (compiled.rendered) compiled.outcome = Compile(*compiled.rendered, stop);
  return compiled;
}

CandidateKernel CandidateCompiler::KernelOf(Compiled compiled) const {
  const Candidate& candidate = compiled.candidate;
  const Configuration* configuration = candidate.configuration();
  std::vector<Dims> checks = configuration != nullptr ? schedule_.CheckDims(*configuration)
                                                      : schedule_.CheckDimsOfKernel(candidate);
  return {*std::move(compiled.outcome->module), std::move(compiled.rendered->plan),
          std::move(checks)};
}

Result<JudgeAnswer> JudgeCandidate(Judge& judge, const CandidateCompiler& compiler,
                                   const Candidate& candidate, const JudgeOrder& order) {
  Compiled compiled = compiler.Compile(candidate);
  if (auto refusal = compiled.Refusal()) return JudgeAnswer{.verdict = *std::move(refusal)};
  if (!compiled.outcome) return std::unexpected(compiled.outcome.error());
  return judge.Examine(compiler.KernelOf(std::move(compiled)), order);
}

}  // namespace atunner
