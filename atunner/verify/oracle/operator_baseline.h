// The baseline kernels of an operator, and their variants: with float64 arithmetic (the reference
// of large tasks) and with decisions that can be perturbed.
//
// Where the intermediate values of the whole task take more than a quarter of the free memory, the
// kernels run on equal slices of it one after another, e.g. one attention head at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "atunner/verify/budget/baseline.h"

namespace atunner {

class OperatorBaseline : public ErrorBaseline {
 public:
  /// `most_bytes`: bytes of intermediate values beyond which the task is sliced.
  OperatorBaseline(const OracleContext& context, const Operator& op, uint64_t most_bytes);

  Status Run(const TaskBuffers& buffers, const RangeOf& elsewhere) override;
  Result<bool> RunPerturbed(const TaskBuffers& buffers, const RangeOf& elsewhere,
                            uint64_t seed) override;
  Result<uint64_t> WorkspaceBytes(const Dims& dims) override;
  TermCounts Terms(const Dims& dims, const std::string& output) const override;
  Result<const DecisionKernels*> Decisions(const Dims& dims) override;
  Status RunDecisions(const TaskBuffers& buffers, const RangeOf& elsewhere,
                      DecisionSource decisions, uint64_t seed) override;

  /// The number of equal slices that a task of this size is computed in; 1 = not sliced.
  int64_t Slices(const Dims& dims) const { return ProgramsFor(dims).slices; }
  /// Runs the float64 variant on one slice. `wide` has the ranges of the whole outputs.
  Status RunWideSlice(const TaskBuffers& buffers, const RangeOf& wide, int64_t slice);

 private:
  /// The kernels for the whole task or for one of `slices` equal slices of it. Each program is
  /// built when it is first needed.
  struct Programs {
    KernelSpec spec;
    int64_t slices = 1;
    std::unique_ptr<Program> baseline, wide;
    std::unique_ptr<Program> deciding;
    std::optional<DecisionKernels> decisions;
    bool decisions_known = false;  ///< whether the two above were looked up
  };
  void SplitIntoSlices(uint64_t most_bytes);
  /// Bytes of intermediate values of the baseline or, if it needs more, of its variant with
  /// decisions.
  std::optional<uint64_t> PerturbedBytes(const KernelSpec& spec, const Dims& dims) const;
  Programs& ProgramsFor(const Dims& dims) { return IsSliced(dims) ? sliced_ : whole_; }
  const Programs& ProgramsFor(const Dims& dims) const { return IsSliced(dims) ? sliced_ : whole_; }
  bool IsSliced(const Dims& dims) const { return sliced_.slices > 1 && dims == context_.spec.dims; }
  Result<Programs*> WithBaseline(const Dims& dims);
  Result<Programs*> WithDecisions(const Dims& dims);
  static std::optional<MemoryRange> SliceOf(const Programs& programs, int64_t slice,
                                            const TaskBuffers& buffers, const RangeOf& elsewhere,
                                            const std::string& name);
  Status RunSlice(const Programs& programs, const Program& program, const TaskBuffers& buffers,
                  const RangeOf& elsewhere, int64_t slice, const char* what);
  static Status RunPerturbedSlices(const Programs& programs, const PerturbedTask& task,
                                   const RangeOf& elsewhere, uint64_t seed);

  OracleContext context_;
  const Operator& operator_;
  Programs whole_, sliced_;
  std::map<Dims, uint64_t> perturbed_bytes_;
};

}  // namespace atunner
