// The oracle: the float64 reference of a task's outputs, hidden from candidates, and the error that
// a correct kernel of the task's precision makes against it.
//
// One Reference belongs to one problem size and one instance of the inputs (family, seed). It is
// made once and serves all candidates:
//
//     inputs ──► float64 result ──► rms, trivial outputs ──► masked with a random key
//       │          (1)                   (2)                         (3)
//       └──────► baseline kernel ──► its error against the reference ──► ErrorBudget
//                  (4)                                                     (5)
//
// 1. A ReferenceSource computes it in one of three ways. Small tasks: Operator::Reference on the
//    CPU. Larger ones: the operator's plain kernel with float64 arithmetic and outputs. A user's
//    kernel: the kernel in its default configuration, carried in float64 (user_reference.h).
// 2. Some instances prove nothing (trivial_outputs.h): zeros, the best constant, a half-written
//    output or a copy of an input would be within the budget.
// 3. Values lie in device memory XORed with a keyed stream (judge_mask in kernels/judge/judge.cu).
//    The key stays on the host and is passed to the compare kernel alone. A candidate that searches
//    memory for the answer, or copies whatever buffer has the right size, finds noise.
// 4. The ErrorBaseline computes the task in its own types: one plain loop per result, or the user's
//    kernel in its default configuration.
// 5. BaselineErrors makes the budget of its error, see error_budget.h. Two things may widen it
//    later, each at most a few times per reference and only if a candidate was about to be refused:
//    budget_reevaluation.h runs the baseline with random roundings, data_dependent_decisions.h
//    finds elements that depend on a decision (argmax, comparison, rounding to an integer) which
//    rounding errors can turn.
#pragma once

#include <memory>
#include <string>

#include "atunner/verify/budget/baseline.h"
#include "atunner/verify/budget/baseline_errors.h"
#include "atunner/verify/budget/budget_reevaluation.h"
#include "atunner/verify/budget/data_dependent_decisions.h"
#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"
#include "atunner/verify/oracle/reference_cache.h"
#include "atunner/verify/oracle/reference_source.h"

namespace atunner {

/// Makes references and keeps the recent ones within a memory limit.
class OracleStore {
 public:
  /// Everything given must outlive it.
  static Result<std::unique_ptr<OracleStore>> Make(Device& device, Compiler& compiler,
                                                   JudgeKernels& kernels, const KernelSpec& spec,
                                                   const MemoryLimits& memory = {});

  /// `buffers` hold the instance's inputs, freshly drawn. Outputs of `buffers` are overwritten.
  Result<const Reference*> Get(const TaskBuffers& buffers, const InputInstance& instance);

  /// Whether a user's kernel bears inputs that nobody promised it, see ReferenceSource::Try.
  Status Try(const TaskBuffers& buffers, double seconds) { return source_->Try(buffers, seconds); }

  /// Called when a candidate is beyond its budget: the baseline's one run may have erred by chance
  /// less than correct kernels do. See BudgetReevaluation::Run. False if nothing changed.
  Result<bool> ReevaluateBudget(const TaskBuffers& buffers, const InputInstance& instance);

  /// Drops values until memory for so many bytes is left of what the store may take.
  void MakeRoom(uint64_t bytes) { cache_.MakeRoom(bytes); }

  /// nullptr if it was not computed yet, or if its values were dropped.
  const Reference* Find(const Dims& dims, const InputInstance& instance) const {
    const Reference* known = cache_.Find(dims, instance);
    return known != nullptr && known->HasValues() ? known : nullptr;
  }

  /// False if the task's own kernel need not repeat its results bit by bit.
  bool Repeats() const { return source_->Repeats(); }
  /// How references of that size are computed, for the report: "float64 reference on the CPU",
  /// "plain kernel in float64", "the kernel as given, carried in float64" or "the kernel as given,
  /// with its own spread".
  std::string Describe(const Dims& dims) const { return source_->Describe(dims); }
  /// True if references of that size are computed on the CPU.
  bool UseCpu(const Dims& dims) const { return source_->UseCpu(dims); }

 private:
  /// The baseline and what is derived from it.
  struct Measured {
    Measured(const OracleContext& context, std::unique_ptr<ErrorBaseline> of)
        : baseline(std::move(of)),
          errors(context, *baseline),
          decisions(context, *baseline, errors),
          reevaluation(context, *baseline, decisions) {}
    std::unique_ptr<ErrorBaseline> baseline;
    BaselineErrors errors;
    DecisionSampler decisions;
    BudgetReevaluation reevaluation;
  };

  OracleStore(const OracleContext& context, uint64_t limit_bytes)
      : context_(context), cache_(limit_bytes) {}
  Status UseOperator(uint64_t free_bytes);
  Result<Reference> Compute(const TaskBuffers& buffers);
  /// True if the values of that reference are never kept.
  Result<bool> IsInParts(const TaskBuffers& buffers, uint64_t reference_bytes);
  /// Allocates and computes the values of all outputs, not masked.
  Status ComputeValues(const TaskBuffers& buffers, Reference& reference);
  Status Mask(const Reference::Output& output);
  Status Finish(const TaskBuffers& buffers, const InputInstance& instance, Reference& reference);

  OracleContext context_;
  std::unique_ptr<Measured> measured_;
  std::unique_ptr<ReferenceSource> source_;
  std::unique_ptr<PartedReferences> parts_;
  ReferenceCache cache_;
};

}  // namespace atunner
