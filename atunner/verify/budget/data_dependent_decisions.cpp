#include "atunner/verify/budget/data_dependent_decisions.h"

#include <algorithm>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/verify/budget/trivial_outputs.h"

namespace atunner {
namespace {

/// 24 draws: an alternative that a draw takes with probability 1/4 is missed with probability
/// (3/4)^24 ≈ 0.001.
constexpr int kDrawsPerRound = 24;
constexpr int kMostRounds = 3;
constexpr double kMostSeconds = 10;  // per round
/// Decisions of a large task are recorded only where that takes up to this share of the memory
/// that the judge may have, since eight references keep them; and for so long.
constexpr uint64_t kSlotsShare = 32;
constexpr double kMostSecondsOfLarge = 2;

/// Smallest relative error that no order of summation explains, so that a decision is the cause.
double DecisionError(const Reference::Output& output) {
  return DefaultBudget(output.dtype, {}, output.scale).norm;
}

int32_t SlotsOf(const DecisionKernels& decisions, const Reference::Output& output) {
  const bool is_index = decisions.index_outputs.contains(output.name);
  return is_index ? DecisionSlots::kIndices : DecisionSlots::kRange;
}

}  // namespace

Status DecisionSampler::AllocateSlots(const DecisionKernels& decisions, Reference& reference) {
  for (Reference::Output& output : reference.outputs) {
    output.decision_slots.slots = SlotsOf(decisions, output);
    const uint64_t bytes = output.elements * static_cast<uint64_t>(output.decision_slots.slots) *
                           sizeof(double);
    ATUNNER_TRY(output.decision_memory, context_.device.Allocate(bytes));
    output.decision_slots.address = output.decision_memory->address();
    ATUNNER_RETURN_IF_ERROR(context_.device.Fill(output.decision_slots.address, 0, bytes));
    reference.bytes += bytes;
  }
  return {};
}

bool DecisionSampler::HasRoom(const Dims& dims, const DecisionKernels& decisions,
                              const Reference& reference) const {
  if (!IsLarge(dims)) return true;
  if (reference.parts != nullptr) return false;
  uint64_t bytes = 0;
  for (const Reference::Output& output : reference.outputs)
    bytes += output.elements * static_cast<uint64_t>(SlotsOf(decisions, output)) * sizeof(double);
  return bytes <= context_.memory.Extra(context_.spec, dims) / kSlotsShare;
}

Status DecisionSampler::MeasureBaseline(const TaskBuffers& buffers, Reference& reference,
                                        const ScratchOutputs& outputs) {
  // Under `fast` the error was measured on narrowed inputs, whose decisions are others.
  if (AccuracyOf(context_.spec) == Accuracy::kFast) return {};
  ATUNNER_RETURN_IF_ERROR(baseline_.Run(buffers, RangesOf(reference, outputs)));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    ATUNNER_TRY(const CompareStats plain,
                CompareWithReference(context_, buffers, reference, i, outputs[i]->address(),
                                     DecisionError(output)));
    if (plain.undetermined > 0) output.baseline = plain;
  }
  return {};
}

Status DecisionSampler::Draw(const TaskBuffers& buffers, const Reference& reference,
                             const ScratchOutputs& outputs, const ScratchOutputs& replayed,
                             uint64_t seed) {
  ATUNNER_RETURN_IF_ERROR(
      baseline_.RunDecisions(buffers, RangesOf(reference, outputs), DecisionSource::kOwn, seed));
  ATUNNER_RETURN_IF_ERROR(baseline_.RunDecisions(buffers, RangesOf(reference, replayed),
                                                 DecisionSource::kBaselineReplay, seed));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    const Reference::Output& output = reference.outputs[i];
    CompareRequest recorded{outputs[i]->address(), output.dtype, output.masked->address(),
                            output.elements, output.key};
    recorded.decisions = output.decision_slots;
    ATUNNER_RETURN_IF_ERROR(context_.kernels.RecordDecisions(recorded, replayed[i]->address()));
  }
  return {};
}

Result<bool> DecisionSampler::Sample(const TaskBuffers& buffers, const InputInstance& instance,
                                     Reference& reference, const ScratchOutputs& outputs) {
  ATUNNER_TRY(const DecisionKernels* decisions, baseline_.Decisions(buffers.dims()));
  if (decisions == nullptr || reference.decision_rounds == kMostRounds ||
      !HasRoom(buffers.dims(), *decisions, reference))
    return false;
  ATUNNER_TRY(const std::optional<ScratchOutputs> replayed,
              AllocateScratchOutputs(context_, baseline_, buffers, reference));
  if (!replayed) return false;
  const bool first = reference.decision_rounds++ == 0;
  if (first) ATUNNER_RETURN_IF_ERROR(AllocateSlots(*decisions, reference));
  const double ends = SystemClock().Now() +
                      (IsLarge(buffers.dims()) ? kMostSecondsOfLarge : kMostSeconds);
  for (int draw = 0; draw < kDrawsPerRound && SystemClock().Now() < ends; ++draw) {
    const uint64_t seed = Mix64(instance.seed + 0xc401ce +
                                static_cast<uint64_t>(draw + 1000 * reference.decision_rounds));
    ATUNNER_RETURN_IF_ERROR(Draw(buffers, reference, outputs, *replayed, seed));
  }
  if (first) ATUNNER_RETURN_IF_ERROR(MeasureBaseline(buffers, reference, outputs));
  return true;
}

Status DecisionSampler::SampleBaseline(const TaskBuffers& buffers, const InputInstance& instance,
                                       Reference& reference) {
  const bool decided_otherwise = std::ranges::any_of(
      reference.outputs, [](const Reference::Output& output) {
        return IsFloat(output.dtype) && !output.overflows &&
               output.baseline.worst > DecisionError(output);
      });
  if (!decided_otherwise || instance.family == InputFamily::kNan) return {};
  ATUNNER_TRY(const DecisionKernels* decisions, baseline_.Decisions(buffers.dims()));
  if (decisions == nullptr || !HasRoom(buffers.dims(), *decisions, reference)) return {};
  ATUNNER_TRY(const std::optional<ScratchOutputs> outputs,
              AllocateScratchOutputs(context_, baseline_, buffers, reference));
  if (!outputs) return {};
  ATUNNER_TRY(const bool sampled, Sample(buffers, instance, reference, *outputs));
  for (size_t i = 0; sampled && i < reference.outputs.size(); ++i) {
    ATUNNER_RETURN_IF_ERROR(UpdateBudget(buffers, reference, i, (*outputs)[i]->address(), true));
  }
  return {};
}

Status DecisionSampler::UpdateBudget(const TaskBuffers& buffers, Reference& reference,
                                     size_t number, DeviceAddress plain, bool renew) {
  Reference::Output& output = reference.outputs[number];
  if (renew) errors_.SetBudget(buffers.dims(), output);
  ATUNNER_TRY(const CompareStats one, CompareWithReference(context_, buffers, reference, number,
                                                           plain, output.budget.element));
  output.undetermined = one.undetermined;
  return TestTrivialOutputs(context_, buffers, reference, number);
}

}  // namespace atunner
