#include "atunner/jobs/kernels/count_lines.h"

#include "atunner/jobs/kernels/loaded_kernel.h"

namespace atunner::jobs {
namespace {

Status CountSteps(KernelOnVirtualGpu& kernel, const LaunchOptions& options, CountResult& counted) {
  for (const BoundStep& step : kernel.steps()) {
    ATUNNER_TRY(
        const vgpu::ExecResult result,
        kernel.gpu().LaunchCounted(kernel.module(), step.entry, step.shape, step.args, options));
    if (!result.outcome.completed())
      return Invalid("'" + step.entry + "' does not complete: " + result.outcome.message, "",
                     "`atunner sanitize` says why");
    for (const auto& [place, line] : result.lines) counted.lines[place] += line;
    counted.counts += result.counts;
    counted.blocks += result.outcome.blocks_executed;
  }
  return {};
}

}  // namespace

Result<CountResult> CountLines(const CountRequest& request, Services& services,
                               const EventSink& events) {
  ATUNNER_TRY(const Target target, TargetOf(request.kernel, services.devices));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  ATUNNER_TRY(const LoadedKernel kernel, LoadKernel(request.kernel, target, *compiler, events));
  ATUNNER_TRY(const auto device, KernelOnVirtualGpu::Make(kernel, target, *compiler));
  LaunchOptions options;
  options.check_hazards = false;
  options.timeout_seconds = request.kernel.timeout_seconds;
  CountResult counted;
  counted.kernel = kernel.name;
  counted.configuration = kernel.configuration;
  counted.gpu = target.profile.name;
  counted.source_name = kernel.source_name;
  counted.source = kernel.source;
  counted.folder = kernel.folder;
  ATUNNER_RETURN_IF_ERROR(CountSteps(*device, options, counted));
  return counted;
}

}  // namespace atunner::jobs
