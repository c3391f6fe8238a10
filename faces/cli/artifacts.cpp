// `show` and `verify`: what an artifact is, and whether it is still right.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "atunner/codegen/template/family.h"
#include "atunner/model/artifact/artifact.h"
#include "atunner/model/json/json.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/operators/operator.h"
#include "faces/cli/cli.h"

namespace atunner::cli {
namespace {

std::optional<double> TimeOf(const Trial& trial) { return trial.ObjectiveNs(); }

}  // namespace

Result<CandidateKernel> CandidateOf(const Path& folder, const Artifact& artifact,
                                    const Target& target, Compiler& compiler) {
  CandidateKernel candidate;
  candidate.plan = artifact.plan;
  if (target.profile.Arch() == artifact.arch) {
    candidate.module.arch = artifact.arch;
    candidate.module.compiler = artifact.compiler;
    candidate.module.kernels = artifact.resources;
    ATUNNER_TRY(candidate.module.ptx, ReadArtifactFile(folder, artifact, "kernel.ptx"));
    ATUNNER_TRY(candidate.module.cubin, ReadArtifactFile(folder, artifact, "kernel.cubin"));
  } else {
    ATUNNER_TRY(const std::string ptx, ReadArtifactFile(folder, artifact, "kernel.ptx"));
    SourceUnit source;
    source.name = "kernel.ptx";
    source.text = ptx;
    source.language = Language::kPtx;
    ATUNNER_TRY(CompileOutcome outcome,
                compiler.Compile({source, EntriesOf(artifact.plan), target.profile.Arch()}));
    if (!outcome.ok())
      return Invalid(
          "the artifact's PTX does not assemble for " + target.profile.name + ": " + outcome.error,
          folder.string());
    candidate.module = *std::move(outcome.module);
  }
  if (artifact.spec.oracle.kind != Oracle::Kind::kKernel) {
    if (const auto schedule = MakeTemplate(artifact.spec, target.profile)) {
      Configuration configuration;
      for (const auto& [name, value] : artifact.configuration)
        configuration.values.push_back(value);
      if (configuration.values.size() == (*schedule)->space().parameters.size())
        candidate.check_dims = (*schedule)->CheckDims(configuration);
    }
  }
  return candidate;
}

Result<int> ShowArtifact(const std::string& folder, const Common& common) {
  ATUNNER_TRY(const Artifact artifact, LoadArtifact(folder));
  if (common.json) {
    ATUNNER_TRY(const std::string manifest, ReadFile(Path(folder) / "manifest.json"));
    fmt::print("{}\n", manifest);
    return 0;
  }
  const auto ns = TimeOf(artifact.trial);
  fmt::print("{} for {}, {}\n", artifact.name, artifact.device, artifact.arch);
  if (ns) fmt::print("  {:<14} {} {}\n", "time", FormatTime(*ns), Name(artifact.evidence));
  for (const Baseline& baseline : artifact.baselines) {
    const auto other = baseline.ObjectiveNs();
    if (baseline.comparison) {
      fmt::print("  {:<14} {:.2f} times as fast [{:.2f}, {:.2f}], {} pairs\n",
                 "vs " + baseline.name, baseline.comparison->ratio, baseline.comparison->low,
                 baseline.comparison->high, baseline.comparison->pairs);
    } else if (other && ns) {
      fmt::print("  {:<14} {:.2f} times as fast ({})\n", "vs " + baseline.name, *other / *ns,
                 Name(artifact.evidence));
    }
  }
  fmt::print("  {:<14} {}\n", "tuned for", ToString(artifact.spec.dims));
  fmt::print("  {:<14} {}\n", "serves any",
             artifact.freedom.dims.empty()
                 ? "no other size"
                 : fmt::format("{}", fmt::join(artifact.freedom.dims, ", ")));
  for (const Constraint& constraint : artifact.freedom.constraints)
    fmt::print("  {:<14} {}\n", "  as long as", constraint.condition.text());
  std::string configuration;
  for (const auto& [name, value] : artifact.configuration)
    configuration += fmt::format("{}{}={}", configuration.empty() ? "" : ", ", name,
                                 ToString(value));
  fmt::print("  {:<14} {}\n", "configuration", configuration);
  for (const KernelResources& kernel : artifact.resources) {
    fmt::print("  {:<14} {}: {} registers, {} bytes static shared, {} bytes spilled\n", "kernel",
               kernel.entry, kernel.registers, kernel.static_shared_bytes,
               kernel.spill_store_bytes);
  }
  const Verdict& verdict = artifact.trial.verdict;
  fmt::print("  {:<14} {}\n", "verified by",
             verdict.correct() ? fmt::format("{} checks, worst error {:.2e}", verdict.checks.size(),
                                             verdict.WorstError())
                               : "nothing: " + verdict.reason);
  fmt::print("  {:<14} {}\n", "accuracy", Name(AccuracyOf(artifact.spec)));
  fmt::print("  {:<14} {} by atunner {} with {}, run {}\n", "made", artifact.created,
             artifact.atunner_version, artifact.compiler, artifact.run);
  return 0;
}

Result<int> VerifyArtifact(const std::string& folder, const std::string& target_name,
                           bool force_virtual, const std::string& accuracy, const Common& common) {
  ATUNNER_TRY(Artifact artifact, LoadArtifact(folder));
  if (!accuracy.empty()) ATUNNER_RETURN_IF_ERROR(ApplyAccuracy(accuracy, artifact.spec));
  ATUNNER_TRY(const Target target,
              ChooseTarget(target_name.empty() ? artifact.device : target_name, force_virtual));
  ATUNNER_TRY(const auto compiler, OpenCompiler());
  ATUNNER_TRY(const CandidateKernel candidate, CandidateOf(folder, artifact, target, *compiler));
  const auto judge = MakeRunner(target, 300);
  const uint64_t seed = std::random_device{}();  // inputs that nobody saw before
  ATUNNER_RETURN_IF_ERROR(judge->Begin({artifact.spec, seed, 60}));
  ATUNNER_TRY(const JudgeAnswer answer,
              judge->Examine(candidate,
                             {.time = true, .thorough = true, .incumbent_ns = {}, .seed = seed}));
  Trial trial;
  trial.measurement = answer.measurement;
  trial.estimate = answer.estimate;
  const auto ns = answer.verdict.stands() ? TimeOf(trial) : std::nullopt;
  if (common.json) {
    PrintJson({{"artifact", folder},
               {"device", target.profile.name},
               {"evidence", Name(target.evidence())},
               {"seed", seed},
               {"verdict", ToJson(answer.verdict)},
               {"ns", ns ? Json(*ns) : Json()}});
    return answer.verdict.correct() ? 0 : 1;
  }
  for (const CheckRecord& check : answer.verdict.checks) {
    fmt::print("{:<7} {:<12} {:<28} {}  error {:.2e}, bound {:.2e}, plain kernel {:.2e}\n",
               check.passed ? "passed" : "FAILED", check.check, check.family, ToString(check.dims),
               check.error, check.bound, check.honest);
  }
  fmt::print("{} on {} with seed {}: {}{}\n", artifact.name, target.profile.name, seed,
             Name(answer.verdict.kind),
             answer.verdict.reason.empty() ? "" : ": " + answer.verdict.reason);
  if (ns) fmt::print("{} {}\n", FormatTime(*ns), Name(target.evidence()));
  return answer.verdict.correct() ? 0 : 1;
}

}  // namespace atunner::cli
