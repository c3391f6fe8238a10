#include "atunner/verify/oracle/operator_baseline.h"

#include <algorithm>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/model/kernel/tensor_totals.h"

namespace atunner {

OperatorBaseline::OperatorBaseline(const OracleContext& context, const Operator& op,
                                   uint64_t most_bytes)
    : context_(context), operator_(op) {
  whole_.spec = context.spec;
  SplitIntoSlices(most_bytes);
}

void OperatorBaseline::SplitIntoSlices(uint64_t most_bytes) {
  const auto fits = [&](const KernelSpec& spec) {
    uint64_t bytes = 0;
    const auto plan = Resolve(operator_.OracleKernel(spec).plan, spec.dims, spec.attributes);
    if (!plan) return false;
    for (const ConcreteWorkspace& workspace : plan->workspaces) bytes += workspace.bytes;
    return bytes <= most_bytes;
  };
  if (fits(context_.spec)) return;
  if (auto tasks = operator_.SplitIntoEqualTasks(context_.spec, fits)) {
    sliced_.spec = std::move(tasks->each);
    sliced_.slices = tasks->count;
  }
}

Result<OperatorBaseline::Programs*> OperatorBaseline::WithBaseline(const Dims& dims) {
  Programs& programs = ProgramsFor(dims);
  if (!programs.baseline) {
    ATUNNER_TRY(programs.baseline, BuildProgram(context_, operator_.ErrorBaseline(programs.spec)));
  }
  return &programs;
}

Result<OperatorBaseline::Programs*> OperatorBaseline::WithDecisions(const Dims& dims) {
  Programs& programs = ProgramsFor(dims);
  if (!std::exchange(programs.decisions_known, true)) {
    programs.decisions = operator_.Decisions(programs.spec);
    if (programs.decisions) {
      ATUNNER_TRY(programs.deciding, BuildProgram(context_, programs.decisions->kernel));
    }
  }
  return &programs;
}

std::optional<MemoryRange> OperatorBaseline::SliceOf(const Programs& programs, int64_t slice,
                                                     const TaskBuffers& buffers,
                                                     const RangeOf& elsewhere,
                                                     const std::string& name) {
  std::optional<MemoryRange> range = elsewhere(name);
  const TaskBuffers::Tensor* tensor = buffers.Find(name);
  if (!range && tensor == nullptr) return std::nullopt;
  if (!range) range = {tensor->address, static_cast<uint64_t>(tensor->shape.bytes)};
  const uint64_t bytes = range->bytes / static_cast<uint64_t>(programs.slices);
  return MemoryRange{range->address + bytes * static_cast<uint64_t>(slice), bytes};
}

Status OperatorBaseline::RunSlice(const Programs& programs, const Program& program,
                                  const TaskBuffers& buffers, const RangeOf& elsewhere,
                                  int64_t slice, const char* what) {
  const AddressOf address = [&](const std::string& name) -> std::optional<DeviceAddress> {
    const auto range = SliceOf(programs, slice, buffers, elsewhere, name);
    return range ? std::optional(range->address) : std::nullopt;
  };
  ATUNNER_TRY(const BoundPlan plan,
              BindPlan(context_.device, program.plan, programs.spec, buffers, address));
  ATUNNER_TRY(const LaunchOutcome outcome,
              RunPlan(context_.device, *program.module, plan,
                      {.check_hazards = false, .timeout_seconds = 600, .blocks = {}}));
  if (!outcome.completed())
    return Fail(ErrorCode::kInternal,
                std::string("the ") + what + " kernel failed: " + outcome.message);
  return {};
}

Status OperatorBaseline::RunWideSlice(const TaskBuffers& buffers, const RangeOf& wide,
                                      int64_t slice) {
  Programs& programs = ProgramsFor(buffers.dims());
  if (!programs.wide) {  // built late: not needed if the CPU computes all references
    ATUNNER_TRY(programs.wide, BuildProgram(context_, operator_.OracleKernel(programs.spec)));
  }
  return RunSlice(programs, *programs.wide, buffers, wide, slice, "float64 reference");
}

Status OperatorBaseline::Run(const TaskBuffers& buffers, const RangeOf& elsewhere) {
  ATUNNER_TRY(const Programs* programs, WithBaseline(buffers.dims()));
  for (int64_t slice = 0; slice < programs->slices; ++slice) {
    ATUNNER_RETURN_IF_ERROR(
        RunSlice(*programs, *programs->baseline, buffers, elsewhere, slice, "plain"));
  }
  return {};
}

Status OperatorBaseline::RunPerturbedSlices(const Programs& programs, const PerturbedTask& task,
                                            const RangeOf& elsewhere, uint64_t seed) {
  for (int64_t slice = 0; slice < programs.slices; ++slice) {
    const RangeOf tensors = [&](const std::string& name) {
      return SliceOf(programs, slice, task.buffers, elsewhere, name);
    };
    ATUNNER_RETURN_IF_ERROR(
        atunner::RunPerturbed(task, tensors, Mix64(seed + static_cast<uint64_t>(slice))));
  }
  return {};
}

Result<bool> OperatorBaseline::RunPerturbed(const TaskBuffers& buffers, const RangeOf& elsewhere,
                                            uint64_t seed) {
  ATUNNER_TRY(const Programs* programs, WithBaseline(buffers.dims()));
  const std::vector<graph::StepRounding> steps = operator_.Roundings(programs->spec);
  if (steps.empty()) return false;
  const PerturbedTask task{context_.device,
                           context_.kernels,
                           *programs->baseline->module,
                           programs->baseline->plan,
                           steps,
                           programs->spec,
                           buffers};
  ATUNNER_RETURN_IF_ERROR(RunPerturbedSlices(*programs, task, elsewhere, seed));
  return true;
}

Result<uint64_t> OperatorBaseline::WorkspaceBytes(const Dims& dims) {
  ATUNNER_TRY(const Programs* programs, WithBaseline(dims));
  ATUNNER_TRY(const ConcretePlan plan,
              Resolve(programs->baseline->plan, dims, programs->spec.attributes));
  uint64_t bytes = 0;
  for (const ConcreteWorkspace& workspace : plan.workspaces) bytes += workspace.bytes;
  return bytes;
}

TermCounts OperatorBaseline::Terms(const Dims& dims, const std::string& output) const {
  TermCounts terms;
  terms.elements = TotalsOf(context_.spec, dims).largest;
  terms.products = operator_.ProductsSummed(context_.spec, dims, output);
  terms.few_sums = operator_.TermsOfFewSums(context_.spec, dims, output, kFewElements);
  return terms;
}

Result<const DecisionKernels*> OperatorBaseline::Decisions(const Dims& dims) {
  ATUNNER_TRY(const Programs* programs, WithDecisions(dims));
  return programs->decisions ? &*programs->decisions : nullptr;
}

Status OperatorBaseline::RunDecisions(const TaskBuffers& buffers, const RangeOf& elsewhere,
                                      DecisionSource decisions, uint64_t seed) {
  ATUNNER_TRY(const Programs* programs, WithDecisions(buffers.dims()));
  const PerturbedTask task{context_.device,
                           context_.kernels,
                           *programs->deciding->module,
                           programs->deciding->plan,
                           programs->decisions->steps,
                           programs->spec,
                           buffers,
                           decisions};
  return RunPerturbedSlices(*programs, task, elsewhere, seed);
}

}  // namespace atunner
