// Randomised re-evaluation of the error budget.
//
// The budget comes from one run of the baseline kernel, which is one draw of a random error. Where
// results cancel that error may be exactly zero because the baseline happens to compute both sides
// of the difference by the same operations; where results are divided by numbers near zero, the
// errors of two correct kernels differ by more than the factor of 4. So before a candidate is
// refused for its error, the baseline runs again with random roundings (perturbed_run.h), 8 times
// for small tasks and 3 times for large ones, and the largest error of all runs counts. This is
// Monte Carlo arithmetic (D. S. Parker, UCLA CSD-970002, 1997).
//
// Example: in a softmax gradient dp - Σ p·dp, a row with a single key has p = 1 and the exact
// result 0. The baseline computes dp - 1·dp = 0, so its error is 0. A correct kernel that computes
// Σ dy·y instead of Σ p·dp gets 3e-8·dp. The perturbed runs read the two sides rounded differently,
// find the same 3e-8·dp, and the candidate passes. A kernel with TF32 products errs 1000 times as
// much and is still refused.
#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/verify/oracle.h"
#include "atunner/verify/perturbed_run.h"

namespace atunner {
namespace {

constexpr int kSmallTaskDraws = 8;
constexpr int kLargeTaskDraws = 3;
constexpr double kMostSeconds = 10;  // no draw begins later than this after the first
constexpr double kMostMemory = 0.5;  // share of the free memory

/// Where the reference is zero everywhere, relative errors need another scale: the rms of what the
/// perturbed baseline runs return. One element may then be as large as all of them together.
void MeasureZerosByErrors(Reference::Output& output) {
  const bool zeros = output.self.squared_reference == 0 && output.self.finite > 0;
  if (!zeros || !(output.baseline.squared_difference > 0)) return;
  const auto elements = static_cast<double>(output.self.finite);
  output.scale = output.baseline.scale = std::sqrt(output.baseline.squared_difference / elements);
  output.baseline.worst = std::sqrt(elements);
}

}  // namespace

Result<std::optional<OracleStore::Outputs>> OracleStore::AllocateScratchOutputs(
    const TaskBuffers& buffers, const Reference& reference) {
  const BaselinePrograms& programs = ProgramsFor(buffers.dims());
  ATUNNER_TRY(const ConcretePlan plan,
              Resolve(programs.baseline->plan, buffers.dims(), programs.spec.attributes));
  uint64_t bytes = 0;
  for (const ConcreteWorkspace& workspace : plan.workspaces) bytes += 4 * workspace.bytes;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors())
    bytes += static_cast<uint64_t>(tensor.shape.bytes);
  ATUNNER_TRY(const uint64_t free_bytes, device_.FreeBytes());
  if (static_cast<double>(bytes) > kMostMemory * static_cast<double>(free_bytes))
    return std::nullopt;
  Outputs outputs;
  for (const Reference::Output& output : reference.outputs) {
    ATUNNER_TRY(outputs.emplace_back(), device_.Allocate(output.elements * SizeOf(output.dtype)));
  }
  return outputs;
}

RangeOf OracleStore::RangesOf(const Reference& reference, const Outputs& outputs) {
  return [&](const std::string& name) -> std::optional<MemoryRange> {
    const auto found = std::ranges::find(reference.outputs, name, &Reference::Output::name);
    if (found == reference.outputs.end()) return std::nullopt;
    const Buffer& memory = *outputs[static_cast<size_t>(found - reference.outputs.begin())];
    return MemoryRange{memory.address(), found->elements * SizeOf(found->dtype)};
  };
}

Status OracleStore::RunSlices(const BaselinePrograms& programs, const PerturbedTask& task,
                              const RangeOf& elsewhere, uint64_t seed) {
  for (int64_t slice = 0; slice < programs.slices; ++slice) {
    const RangeOf tensors = [&](const std::string& name) {
      return SliceOf(programs, slice, task.buffers, elsewhere, name);
    };
    ATUNNER_RETURN_IF_ERROR(
        RunPerturbed(task, tensors, Mix64(seed + static_cast<uint64_t>(slice))));
  }
  return {};
}

Status OracleStore::RunPerturbedOnce(const TaskBuffers& buffers, const Reference& reference,
                                     const Outputs& outputs, uint64_t seed) {
  ATUNNER_TRY(const BaselinePrograms* programs, BaselineFor(buffers.dims()));
  const RangeOf elsewhere = RangesOf(reference, outputs);
  const std::vector<graph::StepRounding> steps = operator_->Roundings(programs->spec);
  if (steps.empty()) {  // where it rounds is not known: nudge the inputs instead
    ATUNNER_RETURN_IF_ERROR(NudgeInputs(buffers, seed));
    ATUNNER_RETURN_IF_ERROR(
        RunBaselineProgram(*programs, *programs->baseline, buffers, elsewhere, "plain"));
    return NudgeInputs(buffers, seed);
  }
  const PerturbedTask task{
      device_,        kernels_, *programs->baseline->module, programs->baseline->plan, steps,
      programs->spec, buffers};
  return RunSlices(*programs, task, elsewhere, seed);
}

Status OracleStore::PerturbErrors(const TaskBuffers& buffers, const InputInstance& instance,
                                  Reference& reference, const Outputs& outputs) {
  const int draws = reference.small() ? kSmallTaskDraws : kLargeTaskDraws;
  const double start = SystemClock().Now();
  for (int draw = 0; draw < draws && SystemClock().Now() - start < kMostSeconds; ++draw) {
    ATUNNER_RETURN_IF_ERROR(
        RunPerturbedOnce(buffers, reference, outputs, Mix64(instance.seed + 0x9e11 + draw)));
    for (size_t i = 0; i < reference.outputs.size(); ++i) {
      ATUNNER_TRY(const CompareStats one, CompareWith(reference.outputs[i], outputs[i]->address()));
      reference.outputs[i].baseline.TakeLarger(one);
    }
  }
  return {};
}

Result<bool> OracleStore::ReevaluateBudget(const TaskBuffers& buffers,
                                           const InputInstance& instance) {
  const auto found = cache_.find({buffers.dims(), instance});
  if (operator_ == nullptr || found == cache_.end()) return false;
  Reference& reference = found->second;
  const bool first = !std::exchange(reference.reevaluated, true);
  if (!first && reference.decision_rounds == 0) return false;
  ATUNNER_TRY(const std::optional<Outputs> outputs, AllocateScratchOutputs(buffers, reference));
  if (!outputs) return false;
  ATUNNER_TRY(const bool sampled, SampleDecisions(buffers, instance, reference, *outputs));
  const bool stated = spec_.tolerance.relative || spec_.tolerance.absolute;
  const bool perturbs = first && !stated && AccuracyOf(spec_) != Accuracy::kStrict;
  if (perturbs) ATUNNER_RETURN_IF_ERROR(PerturbErrors(buffers, instance, reference, *outputs));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    if (perturbs) MeasureZerosByErrors(output);
    ATUNNER_RETURN_IF_ERROR(UpdateBudget(buffers, output, (*outputs)[i]->address(), first));
  }
  return sampled || perturbs;
}

}  // namespace atunner
