#include "atunner/verify/kernel_as_given.h"

#include <utility>

namespace atunner {

Result<std::unique_ptr<KernelAsGiven>> KernelAsGiven::Make(const OracleContext& context) {
  if (!context.spec.oracle.kernel) return Invalid("the task names no reference kernel");
  std::unique_ptr<KernelAsGiven> given(new KernelAsGiven(context));
  ATUNNER_TRY(given->program_, BuildProgram(context, *context.spec.oracle.kernel));
  return given;
}

Status KernelAsGiven::ComputePart(const TaskBuffers& buffers, const RangeOf& wide,
                                  int64_t /*part*/) {
  Device& device = context_.device;
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs());
  ATUNNER_TRY(const BoundPlan plan, BindPlan(device, program_->plan, context_.spec, buffers));
  ATUNNER_RETURN_IF_ERROR(CopySymbols(device, *program_->module, plan));
  ATUNNER_TRY(const LaunchOutcome outcome,
              RunPlan(device, *program_->module, plan,
                      {.check_hazards = false, .timeout_seconds = 600, .blocks = {}}));
  if (!outcome.completed()) {
    return Invalid(
        "the kernel as given does not run: " +
            (outcome.hazards.empty() ? outcome.message
                                     : outcome.hazards[0].where + ": " + outcome.hazards[0].detail),
        context_.spec.name, "check its launch, argument sizes and problem size");
  }
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (!tensor.is_output()) continue;
    ATUNNER_RETURN_IF_ERROR(context_.kernels.Widen(tensor.address, tensor.spec->dtype,
                                                   static_cast<uint64_t>(tensor.shape.elements),
                                                   wide(tensor.spec->name)->address));
  }
  return {};
}

}  // namespace atunner
