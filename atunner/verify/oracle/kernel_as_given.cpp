#include "atunner/verify/oracle/kernel_as_given.h"

#include <algorithm>

#include "atunner/verify/launch/in_out_contents.h"

namespace atunner {

Result<std::unique_ptr<KernelAsGiven>> KernelAsGiven::Make(const OracleContext& context) {
  if (!context.spec.oracle.kernel) return Invalid("the task names no reference kernel");
  std::unique_ptr<KernelAsGiven> given(new KernelAsGiven(context));
  ATUNNER_TRY(given->program_, BuildProgram(context, *context.spec.oracle.kernel));
  return given;
}

DType KernelAsGiven::StoredType(DType output) const {
  const bool wide_integer = output == DType::kInt64 || output == DType::kUInt64;
  return wide_integer ? output : DType::kFloat64;
}

Status KernelAsGiven::Try(const TaskBuffers& buffers, double seconds) {
  return Run(buffers, Poison::Fresh(), seconds);
}

Status KernelAsGiven::Run(const TaskBuffers& buffers, const Poison& poison, double seconds) {
  Device& device = context_.device;
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs(context_.kernels, poison));
  ATUNNER_TRY(const BoundPlan plan,
              BindPlan(device, program_->plan, context_.spec, buffers, Workspaces::kFresh));
  ATUNNER_RETURN_IF_ERROR(PoisonWorkspaces(device, context_.kernels, plan, poison));
  ATUNNER_RETURN_IF_ERROR(CopySymbols(device, *program_->module, plan));
  ATUNNER_TRY(const LaunchOutcome outcome,
              RunPlan(device, *program_->module, plan,
                      {.check_hazards = false, .timeout_seconds = seconds, .blocks = {}}));
  if (outcome.completed()) return {};
  return Invalid(
      "the kernel as given does not run: " +
          (outcome.hazards.empty() ? outcome.message
                                   : outcome.hazards[0].where + ": " + outcome.hazards[0].detail),
      context_.spec.name, "check its launch, argument sizes and problem size");
}

Status KernelAsGiven::ComputePart(const TaskBuffers& buffers, const RangeOf& wide,
                                  int64_t /*part*/) {
  JudgeKernels& kernels = context_.kernels;
  const Poison poison = Poison::Fresh();
  // Without poisoned outputs there is one run.
  const bool may_run_again = std::ranges::any_of(buffers.tensors(),
                                                 &TaskBuffers::Tensor::is_poisoned);
  InOutContents before;
  if (may_run_again) {
    ATUNNER_TRY(before, InOutContents::Of(context_.device, buffers));
  }
  ATUNNER_RETURN_IF_ERROR(Run(buffers, poison));
  uint64_t suspects = 0;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (!tensor.is_output()) continue;
    ATUNNER_TRY(
        const uint64_t some,
        kernels.Widen(tensor.address, tensor.spec->dtype, tensor.elements(),
                      wide(tensor.spec->name)->address, TaskBuffers::PoisonOf(tensor, poison)));
    suspects += some;
  }
  if (suspects == 0) return {};
  ATUNNER_RETURN_IF_ERROR(before.Restore(context_.device));
  ATUNNER_RETURN_IF_ERROR(Run(buffers, poison.Flipped()));
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    const auto own = TaskBuffers::PoisonOf(tensor, poison.Flipped());
    if (!own) continue;
    ATUNNER_RETURN_IF_ERROR(kernels.ConfirmUnwritten(tensor.address, tensor.spec->dtype,
                                                     tensor.elements(),
                                                     wide(tensor.spec->name)->address, *own));
  }
  return {};
}

}  // namespace atunner
