// Second thoughts of the oracle: what the plain kernel's one run does not show of the error that is
// honest.
#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/verify/oracle.h"
#include "atunner/verify/perturbed_run.h"

namespace atunner {
namespace {

constexpr int kDrawsOfSmall = 8;
constexpr int kDrawsOfLarge = 3;
constexpr double kMostSeconds = 10;  // no draw is begun after these
constexpr double kMostMemory = 0.5;  // of what is free

/// Where the right answer is zero, all that kernels compute is their error: it is measured by that
/// of the honest ones, of which one element may be the whole.
void MeasureZerosByErrors(Reference::Output& output) {
  const bool zeros = output.self.squared_reference == 0 && output.self.finite > 0;
  if (!zeros || !(output.honest.squared_difference > 0)) return;
  const auto elements = static_cast<double>(output.self.finite);
  output.scale = output.honest.scale = std::sqrt(output.honest.squared_difference / elements);
  output.honest.worst = std::sqrt(elements);
}

}  // namespace

Result<std::optional<OracleStore::Outputs>> OracleStore::RoomToPerturb(const TaskBuffers& buffers,
                                                                       const Reference& reference) {
  const PlainPrograms& programs = ProgramsFor(buffers.dims());
  ATUNNER_TRY(const ConcretePlan plan,
              Resolve(programs.yardstick->plan, buffers.dims(), programs.spec.attributes));
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

Status OracleStore::RunSlices(const PlainPrograms& programs, const PerturbedTask& task,
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
  ATUNNER_TRY(const PlainPrograms* programs, YardstickFor(buffers.dims()));
  const RangeOf elsewhere = RangesOf(reference, outputs);
  const std::vector<graph::StepRounding> steps = operator_->Roundings(programs->spec);
  if (steps.empty()) {  // where it rounds is not known: what the last bit of the inputs changes
    ATUNNER_RETURN_IF_ERROR(NudgeInputs(buffers, seed));
    ATUNNER_RETURN_IF_ERROR(RunPlain(*programs, *programs->yardstick, buffers, elsewhere, "plain"));
    return NudgeInputs(buffers, seed);
  }
  const PerturbedTask task{
      device_,        kernels_, *programs->yardstick->module, programs->yardstick->plan, steps,
      programs->spec, buffers};
  return RunSlices(*programs, task, elsewhere, seed);
}

Status OracleStore::PerturbErrors(const TaskBuffers& buffers, const InputInstance& instance,
                                  Reference& reference, const Outputs& outputs) {
  const int draws = reference.small() ? kDrawsOfSmall : kDrawsOfLarge;
  const double start = SystemClock().Now();
  for (int draw = 0; draw < draws && SystemClock().Now() - start < kMostSeconds; ++draw) {
    ATUNNER_RETURN_IF_ERROR(
        RunPerturbedOnce(buffers, reference, outputs, Mix64(instance.seed + 0x9e11 + draw)));
    for (size_t i = 0; i < reference.outputs.size(); ++i) {
      ATUNNER_TRY(const CompareStats one, CompareWith(reference.outputs[i], outputs[i]->address()));
      reference.outputs[i].honest.TakeLarger(one);
    }
  }
  return {};
}

Result<bool> OracleStore::Reconsider(const TaskBuffers& buffers, const InputInstance& instance) {
  const auto found = cache_.find({buffers.dims(), instance});
  if (operator_ == nullptr || found == cache_.end()) return false;
  Reference& reference = found->second;
  const bool first = !std::exchange(reference.reconsidered, true);
  if (!first && reference.choice_rounds == 0) return false;
  ATUNNER_TRY(const std::optional<Outputs> outputs, RoomToPerturb(buffers, reference));
  if (!outputs) return false;
  ATUNNER_TRY(const bool chose, FindChoices(buffers, instance, reference, *outputs));
  const bool stated = spec_.tolerance.relative || spec_.tolerance.absolute;
  const bool perturbs = first && !stated && AccuracyOf(spec_) != Accuracy::kStrict;
  if (perturbs) ATUNNER_RETURN_IF_ERROR(PerturbErrors(buffers, instance, reference, *outputs));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    if (perturbs) MeasureZerosByErrors(output);
    ATUNNER_RETURN_IF_ERROR(BudgetWithChoices(buffers, output, (*outputs)[i]->address(), first));
  }
  return chose || perturbs;
}

}  // namespace atunner
