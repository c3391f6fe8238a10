#include "atunner/verify/budget/baseline_errors.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/base/random.h"

namespace atunner {
namespace {

/// Factor on errors of nudged runs with cancelling inputs: in another order of summation partial
/// sums of alternating terms grow far more than where neighbours cancel.
constexpr double kSummationOrders = 4;

/// A sum of n terms of size a moves by about 1.2·√n·a·u where each is nudged, whatever the order.
/// In another order partial sums of terms of either sign are up to √n·a large, and their roundings
/// add up to 0.3·n·a·u: 0.25·√n times as much. Cancelling inputs alternate. With a few accumulators
/// all terms of one have one sign, and partial sums of up to n·a/2 err by up to 0.1·√n·n·a·u, or
/// 0.1·n times as much (measured for n = 3000: four accumulators 0.05·n, threads that add every
/// 128th 0.005·n). The budget's factor of 4 comes on top of these.
constexpr double kErrorPerNudge = 0.25;
constexpr double kErrorPerNudgeCancelling = 0.03;

}  // namespace

Status NudgeInputs(JudgeKernels& kernels, const TaskBuffers& buffers, uint64_t seed) {
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    const DType dtype = tensor.spec->dtype;
    if (tensor.spec->role != Role::kInput || (dtype != DType::kFloat32 && dtype != DType::kFloat64))
      continue;
    ATUNNER_RETURN_IF_ERROR(kernels.Nudge(tensor.address, dtype,
                                          static_cast<uint64_t>(tensor.shape.elements),
                                          seed + tensor.position));
  }
  return {};
}

bool TurnsByNudging(const KernelSpec& spec, InputFamily family) {
  using enum InputFamily;
  return spec.oracle.kind == Oracle::Kind::kKernel &&
         (family == kMined || family == kTies || family == kWhole || family == kZeros);
}

Status BaselineErrors::Measure(const TaskBuffers& buffers, const InputInstance& instance,
                               Reference& reference) {
  ATUNNER_RETURN_IF_ERROR(RenewInOuts(buffers, instance));
  ATUNNER_RETURN_IF_ERROR(baseline_.Prepare(buffers));
  ATUNNER_RETURN_IF_ERROR(RenewInOuts(buffers, instance));
  ATUNNER_TRY(AllStats worst, Run(buffers, reference, [] { return Status{}; }));
  ATUNNER_RETURN_IF_ERROR(AddNudgedRuns(buffers, instance, reference, worst));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    output.budget.baseline_norm = worst[i].RelativeNorm();
    output.budget.baseline_element = worst[i].worst;
    output.overflows = instance.family != InputFamily::kNan &&
                       (worst[i].unwritten || worst[i].new_nonfinite);
  }
  if (AccuracyOf(context_.spec) == Accuracy::kFast) {
    ATUNNER_TRY(const AllStats narrow, RunNarrowed(buffers, instance, reference));
    for (size_t i = 0; i < worst.size(); ++i) worst[i].TakeLarger(narrow[i]);
  }
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    reference.outputs[i].baseline = worst[i];
    SetBudget(buffers.dims(), reference.outputs[i]);
  }
  return {};
}

void BaselineErrors::SetBudget(const Dims& dims, Reference::Output& output) const {
  const KernelSpec& spec = context_.spec;
  const ErrorBudget before = output.budget;
  output.budget = BudgetFromBaseline(output.baseline, output.dtype, spec.tolerance,
                                     AccuracyOf(spec), baseline_.Terms(dims, output.name));
  if (!output.exact) {
    const ErrorBudget least = DefaultBudget(output.dtype, spec.tolerance, output.scale);
    output.budget.norm = std::max(output.budget.norm, least.norm);
    output.budget.element = std::max(output.budget.element, least.element);
    output.budget.noise = output.budget.bias = output.budget.lost_digits = ErrorBudget::kUnlimited;
  }
  output.budget.baseline_norm = before.baseline_norm;
  output.budget.baseline_element = before.baseline_element;
}

Status BaselineErrors::AddNudgedRuns(const TaskBuffers& buffers, const InputInstance& instance,
                                     const Reference& reference, AllStats& worst) {
  // Some inputs amplify every rounding: exponentials of large logits, cancelling sums, and in a
  // small task differences beside a spike. One run is then a single draw of a large random error.
  // No algorithm of this precision can get right what changes with the last bit of the inputs, so
  // the baseline also runs on nudged inputs, and its largest error counts.
  if (TurnsByNudging(context_.spec, instance.family)) return {};
  const bool small = reference.small();
  const bool cancels = instance.family == InputFamily::kCancelling;
  const bool spiked = instance.family == InputFamily::kNeedle ||
                      instance.family == InputFamily::kHeavyTail;
  const bool loses_digits = instance.family == InputFamily::kLargeMean ||
                            instance.family == InputFamily::kNearOne;
  const bool amplifies = cancels || loses_digits || instance.family == InputFamily::kLargeLogits ||
                         (small && spiked);
  const int draws = !amplifies && !baseline_.AddsInUnknownOrder(buffers.dims()) ? 0 : small ? 4 : 1;
  for (int draw = 0; draw < draws; ++draw) {
    ATUNNER_TRY(const AllStats nudged,
                RunNudged(buffers, instance, reference, Mix64(instance.seed + draw)));
    for (size_t i = 0; i < worst.size(); ++i)
      worst[i].TakeLarger(nudged[i],
                          OrdersFactor(buffers.dims(), reference.outputs[i].name, cancels));
  }
  return {};
}

Result<BaselineErrors::AllStats> BaselineErrors::Run(
    const TaskBuffers& buffers, const Reference& reference,
    const std::function<Status()>& restore_inputs) {
  const Poison poison = Poison::Fresh();
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs(context_.kernels, poison));
  const RangeOf in_place = [](const std::string&) { return std::nullopt; };
  ATUNNER_RETURN_IF_ERROR(baseline_.Run(buffers, in_place));
  ATUNNER_RETURN_IF_ERROR(restore_inputs());
  AllStats stats;
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    const TaskBuffers::Tensor& tensor = *buffers.Find(reference.outputs[i].name);
    ATUNNER_TRY(const CompareStats one,
                CompareWithReference(context_, buffers, reference, i, tensor.address, 1e300,
                                     TaskBuffers::PoisonOf(tensor, poison)));
    stats.push_back(one);
  }
  return stats;
}

double BaselineErrors::OrdersFactor(const Dims& dims, const std::string& output,
                                    bool cancels) const {
  const double least = cancels ? kSummationOrders : 1;
  if (!baseline_.AddsInUnknownOrder(dims)) return least;
  const double terms = baseline_.Terms(dims, output).products;
  return std::max(
      {least, kErrorPerNudge * std::sqrt(terms), cancels ? kErrorPerNudgeCancelling * terms : 0});
}

Status BaselineErrors::RenewInOuts(const TaskBuffers& buffers,
                                   const InputInstance& instance) const {
  const bool any = std::ranges::any_of(buffers.tensors(), [](const TaskBuffers::Tensor& tensor) {
    return tensor.spec->role == Role::kInOut;
  });
  return any ? buffers.DrawInputs(context_.kernels, instance) : Status{};
}

Result<BaselineErrors::AllStats> BaselineErrors::RunNudged(const TaskBuffers& buffers,
                                                           const InputInstance& instance,
                                                           const Reference& reference,
                                                           uint64_t seed) {
  ATUNNER_RETURN_IF_ERROR(RenewInOuts(buffers, instance));
  ATUNNER_RETURN_IF_ERROR(NudgeInputs(context_.kernels, buffers, seed));
  return Run(buffers, reference, [&] { return NudgeInputs(context_.kernels, buffers, seed); });
}

Result<BaselineErrors::AllStats> BaselineErrors::RunNarrowed(const TaskBuffers& buffers,
                                                             const InputInstance& instance,
                                                             const Reference& reference) {
  ATUNNER_RETURN_IF_ERROR(RenewInOuts(buffers, instance));
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInput) continue;
    ATUNNER_RETURN_IF_ERROR(context_.kernels.Narrow(tensor.address, tensor.spec->dtype,
                                                    static_cast<uint64_t>(tensor.shape.elements)));
  }
  // In-out tensors hold results until they are compared; a task with such has no parts.
  const auto draw = [&] { return buffers.DrawInputs(context_.kernels, instance); };
  ATUNNER_TRY(AllStats stats, Run(buffers, reference,
                                  [&]() -> Status { return reference.parts ? draw() : Status{}; }));
  ATUNNER_RETURN_IF_ERROR(draw());
  return stats;
}

}  // namespace atunner
