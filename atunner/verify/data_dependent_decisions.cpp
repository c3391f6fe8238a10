// Data-dependent decisions: argmax among nearly equal values, a comparison of a computed value, the
// nearer of two integers. Another correct kernel may decide otherwise, because its values differ in
// their last bits, and its outputs then differ by far more than any error budget.
//
// Example: a mixture-of-experts router returns argmax(softmax(x)). Float64 separates two experts of
// 0.30000001 and 0.30000002; in float32 they are equal, and either index is right. So the output
// "5" may also be "2", and an element computed from expert 5 may be the one of expert 2.
//
// Such alternatives are found by sampling. A variant of the baseline (Operator::Decisions) stores
// every value that something depends on in memory, so that it can be moved by a unit or two in its
// last place. Each draw is a pair of runs with equal perturbations: one takes its own decisions,
// the other replays the unperturbed baseline's. Where the two outputs differ, only a decision can
// be the cause, and both values are recorded as right (DecisionSlots). All other elements stay
// within the usual budget.
#include <algorithm>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/verify/oracle.h"

namespace atunner {
namespace {

/// 24 draws: an alternative that a draw takes with probability 1/4 is missed with probability
/// (3/4)^24 ≈ 0.001.
constexpr int kDrawsPerRound = 24;
constexpr int kMostRounds = 3;
constexpr double kMostSeconds = 10;  // per round

/// Smallest relative error that no order of summation explains, so that a decision is the cause.
double DecisionError(const Reference::Output& output) {
  return DefaultBudget(output.dtype, {}, output.scale).norm;
}

}  // namespace

Status OracleStore::RunDecisions(const TaskBuffers& buffers, const Reference& reference,
                                 const Outputs& outputs, DecisionSource decisions, uint64_t seed) {
  ATUNNER_TRY(const BaselinePrograms* programs, DecisionProgramsFor(buffers.dims()));
  const PerturbedTask task{device_,
                           kernels_,
                           *programs->deciding->module,
                           programs->deciding->plan,
                           programs->decisions->steps,
                           programs->spec,
                           buffers,
                           decisions};
  return RunSlices(*programs, task, RangesOf(reference, outputs), seed);
}

Status OracleStore::AllocateDecisionSlots(const BaselinePrograms& programs, Reference& reference) {
  for (Reference::Output& output : reference.outputs) {
    const bool is_index = programs.decisions->index_outputs.contains(output.name);
    output.decision_slots.slots = is_index ? DecisionSlots::kIndices : DecisionSlots::kRange;
    const uint64_t bytes = output.elements * static_cast<uint64_t>(output.decision_slots.slots) *
                           sizeof(double);
    ATUNNER_TRY(output.decision_memory, device_.Allocate(bytes));
    output.decision_slots.address = output.decision_memory->address();
    ATUNNER_RETURN_IF_ERROR(device_.Fill(output.decision_slots.address, 0, bytes));
    reference.bytes += bytes;
  }
  return {};
}

Status OracleStore::MeasureBaselineBesideDecisions(const TaskBuffers& buffers, Reference& reference,
                                                   const Outputs& outputs) {
  // Under `fast` the error was measured on narrowed inputs, whose decisions are others.
  if (AccuracyOf(spec_) == Accuracy::kFast) return {};
  ATUNNER_TRY(const BaselinePrograms* programs, BaselineFor(buffers.dims()));
  ATUNNER_RETURN_IF_ERROR(RunBaselineProgram(*programs, *programs->baseline, buffers,
                                             RangesOf(reference, outputs), "plain"));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    ATUNNER_TRY(const CompareStats plain,
                CompareWith(output, outputs[i]->address(), DecisionError(output)));
    if (plain.undetermined > 0) output.baseline = plain;
  }
  return {};
}

Status OracleStore::DrawDecisions(const TaskBuffers& buffers, const Reference& reference,
                                  const Outputs& outputs, const Outputs& replayed, uint64_t seed) {
  ATUNNER_RETURN_IF_ERROR(RunDecisions(buffers, reference, outputs, DecisionSource::kOwn, seed));
  ATUNNER_RETURN_IF_ERROR(
      RunDecisions(buffers, reference, replayed, DecisionSource::kBaselineReplay, seed));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    const Reference::Output& output = reference.outputs[i];
    CompareRequest recorded{outputs[i]->address(), output.dtype, output.masked->address(),
                            output.elements, output.key};
    recorded.decisions = output.decision_slots;
    ATUNNER_RETURN_IF_ERROR(kernels_.RecordDecisions(recorded, replayed[i]->address()));
  }
  return {};
}

Result<bool> OracleStore::SampleDecisions(const TaskBuffers& buffers, const InputInstance& instance,
                                          Reference& reference, const Outputs& outputs) {
  ATUNNER_TRY(const BaselinePrograms* programs, DecisionProgramsFor(buffers.dims()));
  if (!programs->decisions || reference.decision_rounds == kMostRounds) return false;
  ATUNNER_TRY(const std::optional<Outputs> replayed, AllocateScratchOutputs(buffers, reference));
  if (!replayed) return false;
  const bool first = reference.decision_rounds++ == 0;
  if (first) ATUNNER_RETURN_IF_ERROR(AllocateDecisionSlots(*programs, reference));
  const double start = SystemClock().Now();
  for (int draw = 0; draw < kDrawsPerRound && SystemClock().Now() - start < kMostSeconds; ++draw) {
    const uint64_t seed = Mix64(instance.seed + 0xc401ce +
                                static_cast<uint64_t>(draw + 1000 * reference.decision_rounds));
    ATUNNER_RETURN_IF_ERROR(DrawDecisions(buffers, reference, outputs, *replayed, seed));
  }
  if (first) ATUNNER_RETURN_IF_ERROR(MeasureBaselineBesideDecisions(buffers, reference, outputs));
  return true;
}

Status OracleStore::SampleBaselineDecisions(const TaskBuffers& buffers,
                                            const InputInstance& instance, Reference& reference) {
  const bool decided_otherwise = std::ranges::any_of(
      reference.outputs, [](const Reference::Output& output) {
        return IsFloat(output.dtype) && !output.overflows &&
               output.baseline.worst > DecisionError(output);
      });
  if (!decided_otherwise || operator_ == nullptr || instance.family == InputFamily::kNan) return {};
  ATUNNER_TRY(const BaselinePrograms* programs, DecisionProgramsFor(buffers.dims()));
  if (!programs->decisions) return {};
  ATUNNER_TRY(const std::optional<Outputs> outputs, AllocateScratchOutputs(buffers, reference));
  if (!outputs) return {};
  ATUNNER_TRY(const bool sampled, SampleDecisions(buffers, instance, reference, *outputs));
  for (size_t i = 0; sampled && i < reference.outputs.size(); ++i) {
    ATUNNER_RETURN_IF_ERROR(
        UpdateBudget(buffers, reference.outputs[i], (*outputs)[i]->address(), true));
  }
  return {};
}

Status OracleStore::UpdateBudget(const TaskBuffers& buffers, Reference::Output& output,
                                 DeviceAddress plain, bool renew) {
  if (renew) SetBudget(buffers, output);
  ATUNNER_TRY(const CompareStats one, CompareWith(output, plain, output.budget.element));
  output.undetermined = one.undetermined;
  return TestTrivialOutputs(buffers, output);
}

}  // namespace atunner
