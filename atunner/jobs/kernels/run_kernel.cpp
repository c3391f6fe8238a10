#include "atunner/jobs/kernels/run_kernel.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace atunner::jobs {
namespace {

void Observe(double value, bool& any, TensorValues& values) {
  if (!std::isfinite(value)) {
    ++values.not_finite;
    return;
  }
  values.least = any ? std::min(values.least, value) : value;
  values.greatest = any ? std::max(values.greatest, value) : value;
  any = true;
}

Result<TensorValues> ValuesOf(vgpu::VirtualGpu& gpu, const TaskBuffers::Tensor& tensor,
                              size_t elements) {
  TensorValues values{
      tensor.spec->name, tensor.spec->role, tensor.spec->dtype, tensor.shape.extents, {}, 0, 0, 0};
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.shape.bytes));
  ATUNNER_RETURN_IF_ERROR(gpu.CopyOut(bytes, tensor.address));
  bool any = false;
  for (size_t i = 0; i < tensor.elements(); ++i) {
    const double value = LoadElement(values.dtype, bytes.data(), i);
    Observe(value, any, values);
    if (i < elements) values.first.push_back(value);
  }
  return values;
}

/// Launches one step. True if the next one may run.
Result<bool> RunStep(KernelOnVirtualGpu& device, const BoundStep& step,
                     const LaunchOptions& options, KernelRun& run) {
  ATUNNER_TRY(const LaunchOutcome outcome,
              device.gpu().Launch(device.module(), step.entry, step.shape, step.args, options));
  run.blocks += outcome.blocks_executed;
  run.printed += outcome.printed;
  run.hazards.insert(run.hazards.end(), outcome.hazards.begin(), outcome.hazards.end());
  run.completed = outcome.completed();
  run.outcome = run.completed ? "completed" : outcome.message;
  if (run.outcome.empty()) run.outcome = "ended by a hazard";
  return run.completed;
}

}  // namespace

Result<KernelRun> RunKernel(const LoadedKernel& kernel, const Target& target, Compiler& compiler,
                            size_t elements, double timeout_seconds) {
  ATUNNER_TRY(const auto device, KernelOnVirtualGpu::Make(kernel, target, compiler));
  KernelRun run;
  run.configuration = kernel.configuration;
  LaunchOptions options;
  options.timeout_seconds = timeout_seconds;
  for (const BoundStep& step : device->steps()) {
    ATUNNER_TRY(const bool goes_on, RunStep(*device, step, options, run));
    if (!goes_on) break;
  }
  for (const TaskBuffers::Tensor& tensor : device->buffers().tensors()) {
    ATUNNER_TRY(TensorValues values, ValuesOf(device->gpu(), tensor, elements));
    run.tensors.push_back(std::move(values));
  }
  return run;
}

}  // namespace atunner::jobs
