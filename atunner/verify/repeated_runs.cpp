// Repeated runs of a candidate: a result is a function of the inputs alone.
//
// A repeated run has the inputs of the first and nothing else in common with it: other buffers at
// other addresses, another instance of the module, renewed workspaces, other poison in them and in
// the outputs and, on the virtual GPU, another order of blocks. Its results must be equal bit by
// bit, or within the error budget where the task allows that they differ.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/verify/verifier_session.h"

namespace atunner {
namespace {

/// A run of the virtual GPU costs as much as all other checks of a case.
constexpr int kVirtualRepeats = 1;
constexpr int kRepeats = 3;
constexpr int kRepeatsAtFullSize = 2;

}  // namespace

Result<const TaskBuffers*> Verifier::BuffersOfRepeat(const Case& one,
                                                     std::unique_ptr<TaskBuffers>& own) {
  if (!IsLarge(one.dims) || !RequiresEqualBits()) return BuffersAt(one.dims, 1 - one.slot);
  ATUNNER_TRY(const TaskBuffers* first, BuffersAt(one.dims, one.slot));
  // The reference is not needed any more: results are compared with those of the first run.
  oracle_->MakeRoom(first->WrittenBytes());
  ATUNNER_TRY(TaskBuffers made, TaskBuffers::AllocateBeside(*first, spec_, 1, Lent::kInputs));
  own = std::make_unique<TaskBuffers>(std::move(made));
  return own.get();
}

Result<bool> Verifier::CheckRepeat(Session& session, const Case& one, const Run& first,
                                   const Reference& reference) {
  if (!session.second_module) {
    ATUNNER_TRY(session.second_module, device_.Load(session.candidate.module));
  }
  std::unique_ptr<TaskBuffers> own;
  ATUNNER_TRY(const TaskBuffers* buffers, BuffersOfRepeat(one, own));
  if (IsLarge(one.dims)) first.plan.workspaces.clear();  // the first run is over
  ATUNNER_TRY(BoundPlan plan,
              BindPlan(device_, session.candidate.plan, spec_, *buffers, Workspaces::kFresh));
  const int repeats = device_.evidence() == Evidence::kPredicted ? kVirtualRepeats
                      : one.dims == spec_.dims                   ? kRepeatsAtFullSize
                                                                 : kRepeats;
  for (int i = 0; i < repeats; ++i) {
    // The flipped poison differs everywhere. Every second run has the module of the first, which
    // must not remember it.
    const Run again{i % 2 == 0 ? *session.second_module : *session.module, *buffers, plan,
                    i == 0 ? first.poison.Flipped() : Poison::Fresh(), SecretBits() | 1};
    ATUNNER_RETURN_IF_ERROR(buffers->DrawInputs(*kernels_, one.instance));
    ATUNNER_TRY(const bool passed, CheckAgain(session, one, first, again, reference));
    if (!passed) return false;
  }
  return session.Record(
      "repeat", one, VerdictKind::kCorrect,
      fmt::format("{} in {} runs at other addresses, over other poison",
                  RequiresEqualBits() ? "bit-equal" : "within the error budget", repeats + 1));
}

Result<bool> Verifier::CheckAgain(Session& session, const Case& one, const Run& first,
                                  const Run& again, const Reference& reference) {
  if (!RequiresEqualBits()) return ExamineOnce(session, one, again, reference);
  ATUNNER_TRY(bool passed, PrepareLaunch(session, one, again));
  if (!passed) return false;
  ATUNNER_TRY(passed, CheckLaunch(session, one, again));
  if (!passed) return false;
  for (const TaskBuffers::Tensor& tensor : first.buffers.tensors()) {
    if (!tensor.is_output()) continue;
    const TwoRuns runs{tensor.address,
                       again.buffers.Find(tensor.spec->name)->address,
                       tensor.spec->dtype,
                       tensor.elements(),
                       TaskBuffers::PoisonOf(tensor, first.poison),
                       TaskBuffers::PoisonOf(tensor, again.poison)};
    ATUNNER_TRY(const RunDifference found, kernels_->Difference(runs));
    leaves_unwritten_ |= found.unwritten > 0;
    if (found.differing == 0) continue;
    return session.Record(
        "repeat", one, VerdictKind::kNondeterministic,
        fmt::format("the same inputs gave other bits in {} of {} elements of '{}' the second time, "
                    "first in element {}",
                    found.differing, tensor.elements(), tensor.spec->name, found.first));
  }
  return true;
}

Result<bool> Verifier::CheckInPlace(Session& session, const std::vector<Dims>& sizes) {
  if (!RequiresEqualBits()) return true;
  const auto smallest = std::ranges::find_if(sizes, [&](const Dims& dims) {
    return session.HasOracleCheck(dims) && !(session.in_part && dims == spec_.dims);
  });
  if (smallest == sizes.end()) return true;  // a run of all blocks takes too long
  ATUNNER_TRY(const TaskBuffers* buffers, BuffersAt(*smallest, 0));
  const Case one{
      *smallest, {InputFamily::kNormal, Mix64(options_.seed ^ 0xa11a5), false}, 0, false};
  ATUNNER_TRY(const std::vector<AliasPair>* pairs, alias_->PairsOf(*buffers, one.instance));
  if (pairs->empty()) return true;
  ATUNNER_TRY(const auto broken,
              alias_->Broken(*session.module, session.candidate.plan, *buffers, one.instance));
  if (!broken) return session.Record("in place", one, VerdictKind::kCorrect, "works in place");
  return session.Record(
      "in place", one, VerdictKind::kWrongResult,
      fmt::format("with one buffer for '{}' and '{}' the result is not that of two with equal "
                  "contents, as it is with the kernel as given",
                  broken->input, broken->in_out));
}

}  // namespace atunner
