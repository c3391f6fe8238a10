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
#pragma once

#include "atunner/verify/budget/baseline.h"
#include "atunner/verify/budget/data_dependent_decisions.h"
#include "atunner/verify/budget/reference.h"

namespace atunner {

class BudgetReevaluation {
 public:
  /// `baseline` and `decisions` must outlive it.
  BudgetReevaluation(const OracleContext& context, ErrorBaseline& baseline,
                     DecisionSampler& decisions)
      : context_(context), baseline_(baseline), decisions_(decisions) {}

  /// Runs the baseline several times with random roundings (once per reference) and with its own
  /// data-dependent decisions (up to three rounds) and widens the budget by what they show. Outputs
  /// of `buffers` stay as they are. False if nothing changed.
  Result<bool> Run(const TaskBuffers& buffers, const InputInstance& instance, Reference& reference);

 private:
  Result<bool> Widen(const TaskBuffers& buffers, const InputInstance& instance,
                     Reference& reference);
  Status RunPerturbedOnce(const TaskBuffers& buffers, const RangeOf& elsewhere, uint64_t seed);
  Status PerturbErrors(const TaskBuffers& buffers, const InputInstance& instance,
                       Reference& reference, const ScratchOutputs& outputs);

  OracleContext context_;
  ErrorBaseline& baseline_;
  DecisionSampler& decisions_;
};

}  // namespace atunner
