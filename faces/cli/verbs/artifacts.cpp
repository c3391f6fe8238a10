// `show` and `verify`: what an artifact is, and whether it, or a training step, is right.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "atunner/capture/capture_reader.h"
#include "atunner/importers/python_step.h"
#include "atunner/jobs/runs/verify.h"
#include "atunner/model/artifact/artifact.h"
#include "atunner/model/json/json.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/plan/execution_plan.h"
#include "faces/cli/flags/parse.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/capture_flags.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

/// One line of `show`: a label and its text.
std::string Row(const std::string& label, const std::string& text) {
  return fmt::format("  {:<14} {}\n", label, text);
}

std::string TimeRows(const Artifact& artifact) {
  const auto ns = artifact.trial.ObjectiveNs();
  std::string text;
  if (ns) text += Row("time", fmt::format("{} {}", FormatTime(*ns), Name(artifact.evidence)));
  for (const Baseline& baseline : artifact.baselines) {
    const auto other = baseline.ObjectiveNs();
    const auto& compared = baseline.comparison;
    if (compared)
      text += Row("vs " + baseline.name,
                  fmt::format("{:.2f} times as fast [{:.2f}, {:.2f}], {} pairs", compared->ratio,
                              compared->low, compared->high, compared->pairs));
    else if (other && ns)
      text += Row("vs " + baseline.name,
                  fmt::format("{:.2f} times as fast ({})", *other / *ns, Name(artifact.evidence)));
  }
  return text;
}

std::string SizeRows(const Artifact& artifact) {
  const ValidSizes& freedom = artifact.valid_sizes;
  std::string text = Row("tuned for", ToString(artifact.spec.dims));
  text += Row("serves any", freedom.dims.empty()
                                ? "no other size"
                                : fmt::format("{}", fmt::join(freedom.dims, ", ")));
  for (const Constraint& constraint : freedom.constraints)
    text += Row("  as long as", constraint.condition.text());
  return text;
}

std::string KernelRows(const Artifact& artifact) {
  std::string configuration;
  for (const auto& [name, value] : artifact.configuration)
    configuration += fmt::format("{}{}={}", configuration.empty() ? "" : ", ", name,
                                 ToString(value));
  std::string text = Row("configuration", configuration);
  for (const KernelResources& kernel : artifact.resources)
    text += Row("kernel", fmt::format("{}: {} registers, {} bytes static shared, {} bytes spilled",
                                      kernel.entry, kernel.registers, kernel.static_shared_bytes,
                                      kernel.spill_store_bytes));
  return text;
}

std::string ProofRows(const Artifact& artifact) {
  const Verdict& verdict = artifact.trial.verdict;
  const std::string checks = fmt::format("{} checks, worst error {:.2e}", verdict.checks.size(),
                                         verdict.WorstError());
  return Row("verified by", verdict.correct()  ? checks
                            : verdict.passed() ? checks + ", on a sample: " + verdict.reason
                                               : "nothing: " + verdict.reason) +
         Row("accuracy", std::string(Name(AccuracyOf(artifact.spec)))) +
         Row("made", fmt::format("{} by atunner {} with {}, run {}", artifact.created,
                                 artifact.atunner_version, artifact.compiler, artifact.run));
}

Result<int> ShowArtifact(const std::string& folder, const Context& context) {
  ATUNNER_TRY(const Artifact artifact, LoadArtifact(folder));
  if (context.common.json) {
    ATUNNER_TRY(const std::string manifest, ReadFile(Path(folder) / "manifest.json"));
    fmt::print("{}\n", manifest);
    return 0;
  }
  const std::string text = fmt::format("{} for {}, {}\n", artifact.name, artifact.device,
                                       artifact.arch) +
                           TimeRows(artifact) + SizeRows(artifact) + KernelRows(artifact) +
                           ProofRows(artifact);
  fmt::print("{}", Printable(text));
  return 0;
}

/// "kernels/1-product: x, w -> h", or the operator in place of the kernel.
std::string StepText(const ExecutionPlan& plan, const PlanStep& step) {
  const auto names = [&](const std::vector<PlanTensor>& tensors) {
    std::string text;
    for (const PlanTensor& tensor : tensors)
      text += (text.empty() ? "" : ", ") + plan.buffers[tensor.buffer].name;
    return text;
  };
  std::string what;
  if (step.kind == PlanStep::Kind::kLaunch) what = plan.kernels[step.kernel] + ": ";
  if (step.kind == PlanStep::Kind::kExtern) what = step.target + ": ";
  return fmt::format("{}{} -> {}", what, names(step.reads), names(step.writes));
}

Result<int> ShowPlan(const std::string& folder, const Context& context) {
  ATUNNER_TRY(const ExecutionPlan plan, LoadPlan(folder));
  if (context.common.json) {
    fmt::print("{}", PlanText(plan));
    return 0;
  }
  std::string text = fmt::format("plan of {} for {}\n", plan.name, plan.device) +
                     Row("weights", fmt::format("{} bytes", plan.weight_bytes)) +
                     Row("workspace", fmt::format("{} bytes", plan.workspace_bytes));
  for (const PlanStep& step : plan.steps)
    text += Row(std::string(Name(step.kind)), StepText(plan, step));
  fmt::print("{}", Printable(text));
  return 0;
}

struct VerifyFlags {
  std::string folder;
  std::string training;
  int64_t steps = 200;
  std::string target;
  bool force_virtual = false;
  std::string accuracy;
};

void PrintVerdict(const jobs::VerifyResult& result) {
  for (const CheckRecord& check : result.verdict.checks) {
    fmt::print("{:<7} {:<12} {:<28} {}  error {:.2e}, bound {:.2e}, plain kernel {:.2e}\n",
               check.passed ? "passed" : "FAILED", check.check, check.family, ToString(check.dims),
               check.error, check.bound, check.honest);
  }
  fmt::print("{} on {} with seed {}: {}{}\n", Printable(result.name), result.gpu, result.seed,
             Name(result.verdict.kind),
             result.verdict.reason.empty() ? "" : ": " + Printable(result.verdict.reason));
  if (const std::string reservation = Reservation(result.verdict);
      result.verdict.correct() && !reservation.empty())
    fmt::print("{}\n", reservation);
  if (result.ns) fmt::print("{} {}\n", FormatTime(*result.ns), Name(result.evidence));
}

Json JsonOf(const std::string& folder, const jobs::VerifyResult& result) {
  return {{"artifact", folder},
          {"device", result.gpu},
          {"evidence", Name(result.evidence)},
          {"seed", result.seed},
          {"verdict", ToJson(result.verdict)},
          {"ns", result.ns ? Json(*result.ns) : Json()}};
}

Result<jobs::VerifyRequest> RequestOf(const VerifyFlags& flags, const std::string& folder) {
  jobs::VerifyRequest request{folder, {flags.target, flags.force_virtual}, {}};
  if (!flags.accuracy.empty()) {
    ATUNNER_TRY(request.accuracy, ParseAccuracyFlag(flags.accuracy));
  }
  return request;
}

/// All kernels of a plan. Exit code 1 if one of them fails.
Result<int> VerifyPlan(const VerifyFlags& flags, const Context& context) {
  ATUNNER_TRY(const ExecutionPlan plan, LoadPlan(flags.folder));
  Machine machine(context.common.store);
  Json kernels = Json::array();
  bool passed = true;
  for (const std::string& kernel : plan.kernels) {
    const std::string folder = (Path(flags.folder) / kernel).string();
    ATUNNER_TRY(const jobs::VerifyRequest request, RequestOf(flags, folder));
    ATUNNER_TRY(const jobs::VerifyResult result, jobs::Verify(request, machine.services()));
    passed = passed && result.verdict.passed();
    kernels.push_back(JsonOf(folder, result));
    if (context.common.json) continue;
    fmt::print("{}\n", kernel);
    PrintVerdict(result);
  }
  if (context.common.json)
    PrintJson({{"plan", flags.folder}, {"passed", passed}, {"kernels", std::move(kernels)}});
  return passed ? 0 : 1;
}

/// A training step against PyTorch's own.
Result<int> VerifyTraining(const VerifyFlags& flags, const Context& context) {
  if (!flags.folder.empty())
    return Invalid("either a folder or a training step", flags.folder + " and " + flags.training);
  if (flags.target.empty())
    return Invalid("no GPU is named", flags.training, "add --target-gpu H200");
  ATUNNER_TRY(const importers::StepVerdict verdict,
              importers::VerifyStep(flags.training, flags.steps, flags.target));
  fmt::print("{}", context.common.json ? verdict.json : Printable(verdict.text));
  return verdict.passed ? 0 : 1;
}

Result<int> Verify(const VerifyFlags& flags, const Context& context) {
  if (!flags.training.empty()) return VerifyTraining(flags, context);
  if (flags.folder.empty())
    return Invalid("nothing to verify", "verify",
                   "give an artifact's or a plan's folder, or --training train.py");
  if (IsPlan(flags.folder)) return VerifyPlan(flags, context);
  ATUNNER_TRY(const jobs::VerifyRequest request, RequestOf(flags, flags.folder));
  Machine machine(context.common.store);
  ATUNNER_TRY(const jobs::VerifyResult result, jobs::Verify(request, machine.services()));
  if (context.common.json)
    PrintJson(JsonOf(flags.folder, result));
  else
    PrintVerdict(result);
  return result.verdict.passed() ? 0 : 1;
}

}  // namespace

void AddArtifacts(VerbList& verbs) {
  const auto shown = std::make_shared<ShowFlags>();
  CLI::App* verb = verbs.Add("show", "what an artifact or a plan is, or the kernels of a capture",
                             [shown](const Context& c) {
                               if (IsPlan(shown->folder)) return ShowPlan(shown->folder, c);
                               return capture::IsCapture(shown->folder)
                                          ? ShowCapture(*shown, c)
                                          : ShowArtifact(shown->folder, c);
                             });
  verb->add_option("folder", shown->folder, "folder of an artifact, a plan or a capture")
      ->required();
  verb->add_option("--target-gpu", shown->target, "GPU to predict a capture's times for");
  verb->add_flag("--no-times", shown->no_times, "do not predict a capture's times");
  const auto flags = std::make_shared<VerifyFlags>();
  verb = verbs.Add("verify", "judge an artifact, or a plan's kernels, again, with new inputs",
                   [flags](const Context& c) { return Verify(*flags, c); });
  verb->add_option("folder", flags->folder, "folder of an artifact or a plan");
  verb->add_option("--training", flags->training,
                   "FILE.py[:FUNCTION]: a training step, each step against PyTorch's in float64");
  verb->add_option("--steps", flags->steps, "training steps to compare")
      ->check(CLI::Range(int64_t{1}, int64_t{100000}))
      ->capture_default_str();
  verb->add_option("--target-gpu", flags->target, "GPU to verify on; default: the artifact's");
  verb->add_flag("--virtual", flags->force_virtual,
                 "on the virtual GPU, even if the GPU is in this machine");
  verb->add_option("--accuracy", flags->accuracy,
                   "strict, default or fast instead of the artifact's own policy");
}

}  // namespace atunner::cli
