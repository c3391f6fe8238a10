// The baseline's error against the reference, and the budget that follows from it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "atunner/verify/budget/baseline.h"
#include "atunner/verify/budget/reference.h"
#include "atunner/verify/inputs/input_family.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

class BaselineErrors {
 public:
  /// `baseline` must outlive it.
  BaselineErrors(const OracleContext& context, ErrorBaseline& baseline)
      : context_(context), baseline_(baseline) {}

  /// Runs the baseline on the instance's inputs and sets the budget of every output. Outputs of
  /// `buffers` are overwritten.
  Status Measure(const TaskBuffers& buffers, const InputInstance& instance, Reference& reference);
  /// The budget that follows from `output.baseline`.
  void SetBudget(const Dims& dims, Reference::Output& output) const;

 private:
  using AllStats = std::vector<CompareStats>;  // one per output
  /// How much larger than the error of nudged inputs that of another order of summation may be.
  double OrdersFactor(const Dims& dims, const std::string& output, bool cancels) const;
  /// Draws the inputs again if the last run overwrote them.
  Status RenewInOuts(const TaskBuffers& buffers, const InputInstance& instance) const;
  /// Runs the baseline on inputs moved by a unit in the last place, where the input family or a
  /// small task amplifies roundings, and keeps the larger errors in `worst`.
  Status AddNudgedRuns(const TaskBuffers& buffers, const InputInstance& instance,
                       const Reference& reference, AllStats& worst);
  /// `restore_inputs` is called before the results are compared: a reference in parts is computed
  /// from the inputs.
  Result<AllStats> Run(const TaskBuffers& buffers, const Reference& reference,
                       const std::function<Status()>& restore_inputs);
  Result<AllStats> RunNudged(const TaskBuffers& buffers, const InputInstance& instance,
                             const Reference& reference, uint64_t seed);
  /// A run on inputs rounded to the next narrower type; restores the inputs afterwards.
  Result<AllStats> RunNarrowed(const TaskBuffers& buffers, const InputInstance& instance,
                               const Reference& reference);

  OracleContext context_;
  ErrorBaseline& baseline_;
};

/// True if nudged inputs say nothing of a user's kernel: values at thresholds of the code, values
/// that are equal to others and halves turn its decisions when they are moved, and that is no
/// error.
bool TurnsByNudging(const KernelSpec& spec, InputFamily family);

/// Moves float inputs by one unit in the last place; the same call moves them back. In-out tensors
/// stay.
Status NudgeInputs(JudgeKernels& kernels, const TaskBuffers& buffers, uint64_t seed);

}  // namespace atunner
