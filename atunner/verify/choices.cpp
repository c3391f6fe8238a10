// What another correct kernel may choose where a computed value decides: a place among nearly equal
// ones, which side of a comparison, the nearer of two whole numbers.
#include <algorithm>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/verify/oracle.h"

namespace atunner {
namespace {

/// Of a choice that one in four draws takes otherwise one in a thousand is missed.
constexpr int kDrawsOfARound = 24;
constexpr int kMostRounds = 3;
constexpr double kMostSeconds = 10;  // of a round

/// An error that no order of operations explains.
double LeapOf(const Reference::Output& output) {
  return DefaultBudget(output.dtype, {}, output.scale).norm;
}

}  // namespace

Status OracleStore::RunChoosing(const TaskBuffers& buffers, const Reference& reference,
                                const Outputs& outputs, Decisions decisions, uint64_t seed) {
  ATUNNER_TRY(const PlainPrograms* programs, ChoosingFor(buffers.dims()));
  const PerturbedTask task{device_,
                           kernels_,
                           *programs->choosing->module,
                           programs->choosing->plan,
                           programs->choices->steps,
                           programs->spec,
                           buffers,
                           decisions};
  return RunSlices(*programs, task, RangesOf(reference, outputs), seed);
}

Status OracleStore::MakeRoomForChoices(const PlainPrograms& programs, Reference& reference) {
  for (Reference::Output& output : reference.outputs) {
    const bool places = programs.choices->index_outputs.contains(output.name);
    output.choices.slots = places ? ChoiceSlots::kPlaces : ChoiceSlots::kRange;
    const uint64_t bytes = output.elements * static_cast<uint64_t>(output.choices.slots) *
                           sizeof(double);
    ATUNNER_TRY(output.choice_memory, device_.Allocate(bytes));
    output.choices.address = output.choice_memory->address();
    ATUNNER_RETURN_IF_ERROR(device_.Fill(output.choices.address, 0, bytes));
    reference.bytes += bytes;
  }
  return {};
}

Status OracleStore::MeasureWithoutChoices(const TaskBuffers& buffers, Reference& reference,
                                          const Outputs& outputs) {
  if (AccuracyOf(spec_) == Accuracy::kFast) return {};  // on narrower inputs others are chosen
  ATUNNER_TRY(const PlainPrograms* programs, YardstickFor(buffers.dims()));
  ATUNNER_RETURN_IF_ERROR(
      RunPlain(*programs, *programs->yardstick, buffers, RangesOf(reference, outputs), "plain"));
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    Reference::Output& output = reference.outputs[i];
    ATUNNER_TRY(const CompareStats plain,
                CompareWith(output, outputs[i]->address(), LeapOf(output)));
    if (plain.undetermined > 0) output.honest = plain;
  }
  return {};
}

Result<bool> OracleStore::FindChoices(const TaskBuffers& buffers, const InputInstance& instance,
                                      Reference& reference, const Outputs& outputs) {
  ATUNNER_TRY(const PlainPrograms* programs, ChoosingFor(buffers.dims()));
  if (!programs->choices || reference.choice_rounds == kMostRounds) return false;
  ATUNNER_TRY(const std::optional<Outputs> fixed, RoomToPerturb(buffers, reference));
  if (!fixed) return false;
  const bool first = reference.choice_rounds++ == 0;
  if (first) ATUNNER_RETURN_IF_ERROR(MakeRoomForChoices(*programs, reference));
  const double start = SystemClock().Now();
  for (int draw = 0; draw < kDrawsOfARound && SystemClock().Now() - start < kMostSeconds; ++draw) {
    const uint64_t seed = Mix64(instance.seed + 0xc401ce +
                                static_cast<uint64_t>(draw + 1000 * reference.choice_rounds));
    ATUNNER_RETURN_IF_ERROR(RunChoosing(buffers, reference, outputs, Decisions::kFree, seed));
    ATUNNER_RETURN_IF_ERROR(RunChoosing(buffers, reference, *fixed, Decisions::kFixed, seed));
    for (size_t i = 0; i < reference.outputs.size(); ++i) {
      const Reference::Output& output = reference.outputs[i];
      CompareRequest noted{outputs[i]->address(), output.dtype, output.masked->address(),
                           output.elements, output.key};
      noted.choices = output.choices;
      ATUNNER_RETURN_IF_ERROR(kernels_.NoteChoices(noted, (*fixed)[i]->address()));
    }
  }
  if (first) ATUNNER_RETURN_IF_ERROR(MeasureWithoutChoices(buffers, reference, outputs));
  return true;
}

Status OracleStore::SettleChoices(const TaskBuffers& buffers, const InputInstance& instance,
                                  Reference& reference) {
  const bool leaps = std::ranges::any_of(reference.outputs, [](const Reference::Output& output) {
    return IsFloat(output.dtype) && !output.overflows && output.honest.worst > LeapOf(output);
  });
  if (!leaps || operator_ == nullptr || instance.family == InputFamily::kNan) return {};
  ATUNNER_TRY(const PlainPrograms* programs, ChoosingFor(buffers.dims()));
  if (!programs->choices) return {};
  ATUNNER_TRY(const std::optional<Outputs> outputs, RoomToPerturb(buffers, reference));
  if (!outputs) return {};
  ATUNNER_TRY(const bool chose, FindChoices(buffers, instance, reference, *outputs));
  for (size_t i = 0; chose && i < reference.outputs.size(); ++i) {
    ATUNNER_RETURN_IF_ERROR(
        BudgetWithChoices(buffers, reference.outputs[i], (*outputs)[i]->address(), true));
  }
  return {};
}

Status OracleStore::BudgetWithChoices(const TaskBuffers& buffers, Reference::Output& output,
                                      DeviceAddress plain, bool renew) {
  if (renew) SetBudget(buffers, output);
  ATUNNER_TRY(const CompareStats one, CompareWith(output, plain, output.budget.element));
  output.undetermined = one.undetermined;
  return TestNullCandidates(buffers, output);
}

}  // namespace atunner
