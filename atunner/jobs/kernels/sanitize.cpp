#include "atunner/jobs/kernels/sanitize.h"

#include <algorithm>
#include <stop_token>

#include "atunner/jobs/kernels/hazard_checks.h"
#include "atunner/jobs/kernels/loaded_kernel.h"
#include "atunner/jobs/requests/user_sources.h"

namespace atunner::jobs {
namespace {

/// Memory that the kernel allocated and did not free; equal hazards are counted together.
void AddLeaks(KernelOnVirtualGpu& kernel, SanitizedKernel& found) {
  for (Hazard& leak : kernel.gpu().Leaks(kernel.module())) {
    const auto same = std::ranges::find_if(found.hazards, [&](const Hazard& h) {
      return h.kind == leak.kind && h.where == leak.where;
    });
    if (same == found.hazards.end())
      found.hazards.push_back(std::move(leak));
    else
      ++same->count;
  }
}

/// Runs one step of the kernel's plan. True if the next step may run.
Result<bool> RunStep(KernelOnVirtualGpu& kernel, const BoundStep& step,
                     const LaunchOptions& options, SanitizedKernel& found) {
  ATUNNER_TRY(const LaunchOutcome outcome,
              kernel.gpu().Launch(kernel.module(), step.entry, step.shape, step.args, options));
  found.blocks += outcome.blocks_executed;
  found.printed += outcome.printed;
  if (outcome.kind == LaunchOutcome::Kind::kRefused ||
      outcome.kind == LaunchOutcome::Kind::kUnsupported)
    return Invalid("'" + step.entry + "' cannot be launched: " + outcome.message);
  if (outcome.kind == LaunchOutcome::Kind::kTimeout && outcome.hazards.empty())
    found.incomplete = outcome.message;
  found.hazards.insert(found.hazards.end(), outcome.hazards.begin(), outcome.hazards.end());
  return outcome.completed();
}

Status RunSteps(KernelOnVirtualGpu& kernel, const LaunchOptions& options, SanitizedKernel& found) {
  for (const BoundStep& step : kernel.steps()) {
    ATUNNER_TRY(const bool goes_on, RunStep(kernel, step, options, found));
    if (goes_on) continue;
    if (&step != &kernel.steps().back() && found.incomplete.empty())
      found.incomplete = "the steps after '" + step.entry + "' were not run";
    return {};
  }
  AddLeaks(kernel, found);
  return {};
}

/// Hazards name kernels as the source does, not by the compiler's mangled names.
void NameKernels(const CompiledModule& module, std::vector<Hazard>& hazards) {
  for (Hazard& hazard : hazards) {
    if (const KernelResources* kernel = module.Find(hazard.kernel)) hazard.kernel = kernel->entry;
  }
}

Result<SanitizedKernel> SanitizeOne(const SanitizeRequest& request, const Target& target,
                                    Compiler& compiler, const EventSink& events) {
  ATUNNER_TRY(const LoadedKernel kernel, LoadKernel(request.kernel, target, compiler, events));
  return SanitizeLoaded(
      kernel, target, compiler,
      OptionsOfChecks(request.groups, request.kernel.timeout_seconds, request.max_instructions));
}

}  // namespace

Result<SanitizedKernel> SanitizeLoaded(const LoadedKernel& kernel, const Target& target,
                                       Compiler& compiler, const LaunchOptions& options) {
  ATUNNER_TRY(const auto device, KernelOnVirtualGpu::Make(kernel, target, compiler));
  SanitizedKernel found;
  found.kernel = kernel.name;
  found.configuration = kernel.configuration;
  found.gpu = target.profile.name;
  found.source_name = kernel.source_name;
  found.source = kernel.source;
  found.folder = kernel.folder;
  ATUNNER_RETURN_IF_ERROR(RunSteps(*device, options, found));
  JoinSides(found.hazards);
  NameKernels(kernel.candidate.module, found.hazards);
  return found;
}

Result<SanitizeResult> Sanitize(const SanitizeRequest& request, Services& services,
                                const EventSink& events, std::stop_token stop) {
  ATUNNER_TRY(const Target target, TargetOf(request.kernel, services.devices));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  const auto kernels = KernelsOf(request.kernel.file.string(), request.kernel.kernel);
  SanitizeResult result;
  for (const std::string& kernel : kernels) {
    if (stop.stop_requested()) break;
    SanitizeRequest one = request;
    one.kernel.kernel = kernel;
    auto found = SanitizeOne(one, target, *compiler, events);
    if (found) {
      events(KernelSanitizedEvent{*found});
      result.kernels.push_back(*std::move(found));
      continue;
    }
    if (kernels.size() == 1 || found.error().code != ErrorCode::kInvalidInput)
      return std::unexpected(found.error());
    events(KernelRefusedEvent{kernel, found.error()});
    result.refused = found.error();
  }
  return result;
}

}  // namespace atunner::jobs
