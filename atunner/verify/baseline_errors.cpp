#include "atunner/verify/baseline_errors.h"

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
/// In the worst order all terms of one sign come first, and its partial sums of up to n·a/2 are
/// rounded: 0.3·n·a·u for threads that add every 128th of alternating terms (measured for n =
/// 3000), or 0.25·√n times as much.
constexpr double kErrorPerNudge = 0.25;

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

Status BaselineErrors::Measure(const TaskBuffers& buffers, const InputInstance& instance,
                               Reference& reference) {
  ATUNNER_RETURN_IF_ERROR(RenewInOuts(buffers, instance));
  ATUNNER_TRY(AllStats worst, Run(buffers, reference));
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
  const bool small = reference.small();
  const bool cancels = instance.family == InputFamily::kCancelling;
  const bool spiked = instance.family == InputFamily::kNeedle ||
                      instance.family == InputFamily::kHeavyTail;
  const bool amplifies = cancels || instance.family == InputFamily::kLargeLogits ||
                         (small && spiked);
  const int draws = !amplifies && !baseline_.adds_in_unknown_order() ? 0 : small ? 4 : 1;
  for (int draw = 0; draw < draws; ++draw) {
    ATUNNER_TRY(const AllStats nudged,
                RunNudged(buffers, instance, reference, Mix64(instance.seed + draw)));
    for (size_t i = 0; i < worst.size(); ++i) {
      const double orders = OrdersFactor(buffers.dims(), reference.outputs[i].name);
      worst[i].TakeLarger(nudged[i], std::max(orders, cancels ? kSummationOrders : 1));
    }
  }
  return {};
}

Result<BaselineErrors::AllStats> BaselineErrors::Run(const TaskBuffers& buffers,
                                                     const Reference& reference) {
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs());
  const RangeOf in_place = [](const std::string&) { return std::nullopt; };
  ATUNNER_RETURN_IF_ERROR(baseline_.Run(buffers, in_place));
  AllStats stats;
  for (const Reference::Output& output : reference.outputs) {
    ATUNNER_TRY(const CompareStats one,
                CompareWithReference(context_.kernels, output, buffers.Find(output.name)->address));
    stats.push_back(one);
  }
  return stats;
}

double BaselineErrors::OrdersFactor(const Dims& dims, const std::string& output) const {
  if (!baseline_.adds_in_unknown_order()) return 1;
  const double terms = baseline_.Terms(dims, output).products;
  return std::max(1.0, kErrorPerNudge * std::sqrt(terms));
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
  ATUNNER_TRY(AllStats stats, Run(buffers, reference));
  ATUNNER_RETURN_IF_ERROR(NudgeInputs(context_.kernels, buffers, seed));
  return stats;
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
  ATUNNER_TRY(AllStats stats, Run(buffers, reference));
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(context_.kernels, instance));
  return stats;
}

}  // namespace atunner
