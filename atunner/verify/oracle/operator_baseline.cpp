#include "atunner/verify/oracle/operator_baseline.h"

#include <algorithm>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/model/kernel/tensor_totals.h"

namespace atunner {
namespace {

/// Shares of MemoryLimits::Extra that slices of a large task may take: a part of the reference, a
/// reference that is kept whole, and the intermediate values of one run, which a perturbed run has
/// four times.
constexpr uint64_t kPartShare = 4;
constexpr uint64_t kWholeShare = 2;
constexpr uint64_t kPerturbedShare = 8;

}  // namespace

OperatorBaseline::OperatorBaseline(const OracleContext& context, const Operator& op,
                                   uint64_t most_bytes)
    : context_(context), operator_(op) {
  whole_.spec = context.spec;
  SplitIntoSlices(most_bytes);
}

namespace {

/// Bytes of a plan's workspaces; nullopt if it has no valid sizes.
std::optional<uint64_t> WorkspacesOf(const LaunchPlan& plan, const KernelSpec& spec,
                                     const Dims& dims) {
  const auto resolved = Resolve(plan, dims, spec.attributes);
  if (!resolved) return std::nullopt;
  uint64_t bytes = 0;
  for (const ConcreteWorkspace& workspace : resolved->workspaces) bytes += workspace.bytes;
  return bytes;
}

/// Bytes of all outputs in float64.
uint64_t ReferenceBytes(const KernelSpec& spec) {
  uint64_t bytes = 0;
  for (const ArgSpec& arg : spec.args) {
    const auto shape = ShapeOf(arg, spec, spec.dims);
    if (arg.role != Role::kInput && arg.role != Role::kScalar && shape)
      bytes += static_cast<uint64_t>(shape->elements) * sizeof(double);
  }
  return bytes;
}

}  // namespace

void OperatorBaseline::SplitIntoSlices(uint64_t most_bytes) {
  const auto has_small_workspaces = [&](const KernelSpec& spec) {
    const auto bytes = WorkspacesOf(operator_.OracleKernel(spec).plan, spec, spec.dims);
    return bytes && *bytes <= most_bytes;
  };
  const KernelSpec& whole = context_.spec;
  const bool large = context_.memory.IsLarge(context_.device, whole, whole.dims);
  const uint64_t extra = context_.memory.Extra(whole, whole.dims);
  const auto fits_large = [&](const KernelSpec& spec) {
    if (!has_small_workspaces(spec) || ReferenceBytes(spec) > extra / kPartShare) return false;
    const uint64_t one_run = PerturbedBytes(spec, spec.dims).value_or(extra);
    return one_run <= extra / kPerturbedShare;
  };
  const auto split = [&](const auto& fits) {
    const auto tasks = operator_.SplitIntoEqualTasks(whole, fits);
    if (!tasks) return false;
    sliced_.spec = tasks->each;
    sliced_.slices = tasks->count;
    return true;
  };
  if (large && (ReferenceBytes(whole) > extra / kWholeShare ||
                PerturbedBytes(whole, whole.dims).value_or(extra) > extra / kPerturbedShare)) {
    const auto has_small_parts = [&](const KernelSpec& spec) {
      return has_small_workspaces(spec) && ReferenceBytes(spec) <= extra / kPartShare;
    };
    if (split(fits_large) || split(has_small_parts)) return;
  }
  if (!has_small_workspaces(whole)) split(has_small_workspaces);
}

std::optional<uint64_t> OperatorBaseline::PerturbedBytes(const KernelSpec& spec,
                                                         const Dims& dims) const {
  const auto plain = WorkspacesOf(operator_.ErrorBaseline(spec).plan, spec, dims);
  const auto decisions = operator_.Decisions(spec);
  if (!plain || !decisions) return plain;
  const auto deciding = WorkspacesOf(decisions->kernel.plan, spec, dims);
  return deciding ? std::optional(std::max(*plain, *deciding)) : std::nullopt;
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

namespace {

/// True for an input that every slice has whole, such as the filters of a convolution.
bool IsShared(const KernelSpec& slice, const TaskBuffers::Tensor& tensor) {
  const auto arg = std::ranges::find(slice.args, tensor.spec->name, &ArgSpec::name);
  if (arg == slice.args.end() || arg->role != Role::kInput) return false;
  const auto shape = ShapeOf(*arg, slice, slice.dims);
  return shape && shape->elements == tensor.shape.elements;
}

}  // namespace

std::optional<MemoryRange> OperatorBaseline::SliceOf(const Programs& programs, int64_t slice,
                                                     const TaskBuffers& buffers,
                                                     const RangeOf& elsewhere,
                                                     const std::string& name) {
  std::optional<MemoryRange> range = elsewhere(name);
  const TaskBuffers::Tensor* tensor = buffers.Find(name);
  if (!range && tensor == nullptr) return std::nullopt;
  if (!range) range = {tensor->address, static_cast<uint64_t>(tensor->shape.bytes)};
  if (tensor != nullptr && IsShared(programs.spec, *tensor)) return range;
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
  const auto known = perturbed_bytes_.find(dims);
  if (known != perturbed_bytes_.end()) return known->second;
  const Programs& programs = ProgramsFor(dims);
  const auto bytes = PerturbedBytes(programs.spec, IsSliced(dims) ? programs.spec.dims : dims);
  if (!bytes) return Invalid("the plain kernel has no valid sizes", context_.spec.name);
  return perturbed_bytes_[dims] = *bytes;
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
