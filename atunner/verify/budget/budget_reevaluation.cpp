#include "atunner/verify/budget/budget_reevaluation.h"

#include <cmath>
#include <utility>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/verify/launch/in_out_contents.h"

namespace atunner {
namespace {

constexpr int kSmallTaskDraws = 8;
constexpr int kLargeTaskDraws = 3;
// No draw begins later than this after the first.
constexpr double kMostSeconds = 10;
constexpr double kMostSecondsOfLarge = 2;

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

Status BudgetReevaluation::RunPerturbedOnce(const TaskBuffers& buffers, const RangeOf& elsewhere,
                                            uint64_t seed) {
  ATUNNER_TRY(const bool perturbed, baseline_.RunPerturbed(buffers, elsewhere, seed));
  if (perturbed) return {};
  // Where it rounds is not known: nudge the inputs instead.
  ATUNNER_RETURN_IF_ERROR(NudgeInputs(context_.kernels, buffers, seed));
  ATUNNER_RETURN_IF_ERROR(baseline_.Run(buffers, elsewhere));
  return NudgeInputs(context_.kernels, buffers, seed);
}

Status BudgetReevaluation::PerturbErrors(const TaskBuffers& buffers, const InputInstance& instance,
                                         Reference& reference, const ScratchOutputs& outputs) {
  const int draws = reference.small() ? kSmallTaskDraws : kLargeTaskDraws;
  const bool large = context_.memory.IsLarge(context_.device, context_.spec, buffers.dims());
  const double ends = SystemClock().Now() + (large ? kMostSecondsOfLarge : kMostSeconds);
  const RangeOf elsewhere = RangesOf(reference, outputs);
  for (int draw = 0; draw < draws && SystemClock().Now() < ends; ++draw) {
    ATUNNER_RETURN_IF_ERROR(
        RunPerturbedOnce(buffers, elsewhere, Mix64(instance.seed + 0x9e11 + draw)));
    for (size_t i = 0; i < reference.outputs.size(); ++i) {
      ATUNNER_TRY(const CompareStats one,
                  CompareWithReference(context_, buffers, reference, i, outputs[i]->address()));
      reference.outputs[i].baseline.TakeLarger(one);
    }
  }
  return {};
}

Result<bool> BudgetReevaluation::Run(const TaskBuffers& buffers, const InputInstance& instance,
                                     Reference& reference) {
  // Further runs need the inputs that a candidate overwrote in place, and its results afterwards.
  ATUNNER_TRY(const InOutContents results, InOutContents::Of(context_.device, buffers));
  if (!results.empty()) ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(context_.kernels, instance));
  ATUNNER_TRY(const bool changed, Widen(buffers, instance, reference));
  ATUNNER_RETURN_IF_ERROR(results.Restore(context_.device));
  return changed;
}

Result<bool> BudgetReevaluation::Widen(const TaskBuffers& buffers, const InputInstance& instance,
                                       Reference& reference) {
  const KernelSpec& spec = context_.spec;
  const bool first = !std::exchange(reference.reevaluated, true);
  if (!first && reference.decision_rounds == 0) return false;
  ATUNNER_TRY(const std::optional<ScratchOutputs> outputs,
              AllocateScratchOutputs(context_, baseline_, buffers, reference));
  if (!outputs) return false;
  ATUNNER_TRY(const bool sampled, decisions_.Sample(buffers, instance, reference, *outputs));
  const bool stated = spec.tolerance.relative || spec.tolerance.absolute;
  const bool perturbs = first && !stated && !TurnsByNudging(spec, instance.family) &&
                        AccuracyOf(spec) != Accuracy::kStrict &&
                        baseline_.MayNudge(buffers.dims(), instance.family);
  if (perturbs) ATUNNER_RETURN_IF_ERROR(PerturbErrors(buffers, instance, reference, *outputs));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    if (perturbs) MeasureZerosByErrors(output);
    ATUNNER_RETURN_IF_ERROR(
        decisions_.UpdateBudget(buffers, reference, i, (*outputs)[i]->address(), first));
  }
  return sampled || perturbs;
}

}  // namespace atunner
