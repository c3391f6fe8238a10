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
#pragma once

#include "atunner/verify/budget/baseline.h"
#include "atunner/verify/budget/baseline_errors.h"
#include "atunner/verify/budget/reference.h"
#include "atunner/verify/budget/scratch_outputs.h"

namespace atunner {

class DecisionSampler {
 public:
  /// `baseline` and `errors` must outlive it.
  DecisionSampler(const OracleContext& context, ErrorBaseline& baseline, BaselineErrors& errors)
      : context_(context), baseline_(baseline), errors_(errors) {}

  /// One round of runs whose decisions follow perturbed values; records what the outputs become.
  /// False if the task decides nothing or three rounds were made.
  Result<bool> Sample(const TaskBuffers& buffers, const InputInstance& instance,
                      Reference& reference, const ScratchOutputs& outputs);
  /// Samples before the first candidate is judged if the baseline's own error is too large for
  /// another order of summation: its decisions then differ from the reference's, and that must not
  /// widen the budget.
  Status SampleBaseline(const TaskBuffers& buffers, const InputInstance& instance,
                        Reference& reference);
  /// Recomputes the undetermined elements of an output, and with `renew` its budget. `plain` holds
  /// the output of a baseline run.
  Status UpdateBudget(const TaskBuffers& buffers, Reference& reference, size_t number,
                      DeviceAddress plain, bool renew);

 private:
  bool IsLarge(const Dims& dims) const {
    return context_.memory.IsLarge(context_.device, context_.spec, dims);
  }
  /// False for a large task whose recorded decisions would take too much memory. Its budget then
  /// has the baseline's own decisions in it.
  bool HasRoom(const Dims& dims, const DecisionKernels& decisions,
               const Reference& reference) const;
  Status AllocateSlots(const DecisionKernels& decisions, Reference& reference);
  /// Measures the baseline's error again, where the recorded decisions count as no error.
  Status MeasureBaseline(const TaskBuffers& buffers, Reference& reference,
                         const ScratchOutputs& outputs);
  /// One draw: a run with its own decisions into `outputs`, one with the baseline's into
  /// `replayed`.
  Status Draw(const TaskBuffers& buffers, const Reference& reference, const ScratchOutputs& outputs,
              const ScratchOutputs& replayed, uint64_t seed);

  OracleContext context_;
  ErrorBaseline& baseline_;
  BaselineErrors& errors_;
};

}  // namespace atunner
