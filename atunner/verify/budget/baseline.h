// The baseline: kernels that compute the task in its own types. Their error against the reference
// gives the error budget.
#pragma once

#include <memory>
#include <string>

#include "atunner/operators/operator.h"
#include "atunner/verify/budget/perturbed_run.h"
#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// A kernel of the judge, compiled and loaded.
struct Program {
  CompiledModule compiled;
  std::unique_ptr<LoadedModule> module;
  LaunchPlan plan;
};
Result<std::unique_ptr<Program>> BuildProgram(const OracleContext& context,
                                              const RenderedKernel& kernel);

class ErrorBaseline {
 public:
  virtual ~ErrorBaseline() = default;
  /// Called with freshly drawn inputs before the runs on them. May overwrite outputs.
  virtual Status Prepare(const TaskBuffers& /*buffers*/) { return {}; }
  /// Runs the kernels on the inputs of `buffers`. Outputs go where `elsewhere` says, else into
  /// `buffers`.
  virtual Status Run(const TaskBuffers& buffers, const RangeOf& elsewhere) = 0;
  /// The same with random roundings drawn from `seed`. False, without a run, if it is not known
  /// where the kernels round.
  virtual Result<bool> RunPerturbed(const TaskBuffers& buffers, const RangeOf& elsewhere,
                                    uint64_t seed) = 0;
  /// Bytes that one run, or one with other decisions, takes beside the task's tensors.
  virtual Result<uint64_t> WorkspaceBytes(const Dims& dims) = 0;
  /// The numbers of terms of which an output's elements are sums, as far as they are known.
  virtual TermCounts Terms(const Dims& dims, const std::string& output) const = 0;

  /// True if other correct kernels may add long sums in an order that nothing is known of.
  virtual bool AddsInUnknownOrder(const Dims& /*dims*/) const { return false; }
  /// True if runs on nudged inputs may stand for other correct kernels. The roundings of a function
  /// of single elements do not move its inputs: sin(10000) is known to the last bit.
  virtual bool MayNudge(const Dims& /*dims*/, InputFamily /*family*/) const { return true; }

  /// The variant whose data-dependent decisions can be perturbed; nullptr if nothing is decided.
  virtual Result<const DecisionKernels*> Decisions(const Dims& /*dims*/) { return nullptr; }
  /// Runs that variant. Call it only if there is one.
  virtual Status RunDecisions(const TaskBuffers& /*buffers*/, const RangeOf& /*elsewhere*/,
                              DecisionSource /*decisions*/, uint64_t /*seed*/) {
    return {};
  }
};

}  // namespace atunner
