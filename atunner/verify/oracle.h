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
// 1. The reference is computed in one of three ways. Small tasks: Operator::Reference on the CPU.
//    Larger ones: the operator's plain kernel with float64 arithmetic and outputs. A user's kernel:
//    the kernel in its default configuration, converted to float64.
// 2. Some instances prove nothing. A mean of normal inputs is close to 0, so that zeros would pass.
//    TestTrivialOutputs tests whether zeros, the best constant, a half-written output or a copy of
//    an input would be within the budget; such an instance does not count as a proof.
// 3. Values lie in device memory XORed with a keyed stream (judge_mask in kernels/judge/judge.cu).
//    The key stays on the host and is passed to the compare kernel alone. A candidate that searches
//    memory for the answer, or copies whatever buffer has the right size, finds noise.
// 4. The baseline kernel computes the task in its own types, one plain loop per result.
// 5. Its error becomes the budget, see error_budget.h. Two things may widen it later, each at most
//    a few times per reference and only if a candidate was about to be refused:
//    budget_reevaluation.cpp runs the baseline with random roundings, data_dependent_decisions.cpp
//    finds elements that depend on a decision (argmax, comparison, rounding to an integer) which
//    rounding errors can turn.
//
// Where the baseline's intermediate values do not fit into a quarter of the free memory, both
// kernels run on equal slices of the task one after another, e.g. one attention head at a time.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "atunner/operators/operator.h"
#include "atunner/verify/error_budget.h"
#include "atunner/verify/judge_kernels.h"
#include "atunner/verify/perturbed_run.h"
#include "atunner/verify/task_buffers.h"

namespace atunner {

/// The right answer to one input instance at one problem size, masked in device memory.
struct Reference {
  struct Output {
    std::string name;
    DType dtype = DType::kFloat32;
    std::unique_ptr<Buffer> masked;  ///< `elements` values in float64, XORed with a stream of `key`
    uint64_t elements = 0;
    uint64_t key = 0;
    double scale = 0;  ///< ElementScale of the task's tolerance
    ErrorBudget budget;
    CompareStats self;      ///< the reference compared with itself: its norm, mean and rms
    CompareStats baseline;  ///< the largest errors of the baseline's runs, which give the budget
    std::unique_ptr<Buffer> decision_memory;
    /// Other values that are right too, where data-dependent decisions may go another way
    DecisionSlots decision_slots;
    uint64_t undetermined = 0;  ///< elements that such a decision may move beyond the budget
    /// False when zeros, a constant or a copy of an input would pass: this instance proves nothing.
    bool discriminates = true;
    /// True when the results of the baseline kernel leave its type's range: no candidate can be
    /// compared on this instance.
    bool overflows = false;
  };
  std::vector<Output> outputs;
  uint64_t bytes = 0;
  bool reevaluated = false;  ///< whether ReevaluateBudget has run
  int decision_rounds = 0;   ///< rounds of SampleDecisions so far

  /// Less than 8 MiB in float64: one element's error weighs in the norm, and several runs cost
  /// little.
  bool small() const;
  bool discriminates() const;
  bool overflows() const;
  /// True if more than a quarter of an output's elements depend on decisions that roundings may
  /// turn: a candidate that passes has shown nothing.
  bool mostly_undetermined() const;
};

/// Makes references and keeps the recent ones within a memory limit.
class OracleStore {
 public:
  /// Everything given must outlive it.
  static Result<std::unique_ptr<OracleStore>> Make(Device& device, Compiler& compiler,
                                                   JudgeKernels& kernels, const KernelSpec& spec);

  /// `buffers` hold the instance's inputs, freshly drawn. Outputs of `buffers` are overwritten.
  Result<const Reference*> Get(const TaskBuffers& buffers, const InputInstance& instance);

  /// Called when a candidate is beyond its budget: the baseline's one run may have erred by chance
  /// less than correct kernels do. Runs the baseline several times with random roundings (once per
  /// reference) and with its own data-dependent decisions (up to three rounds) and widens the
  /// budget by what they show. Outputs of `buffers` stay as they are. False if nothing changed.
  Result<bool> ReevaluateBudget(const TaskBuffers& buffers, const InputInstance& instance);

  /// nullptr if it was not computed yet or was evicted.
  const Reference* Find(const Dims& dims, const InputInstance& instance) const;

  /// How references of that size are computed, for the report: "float64 reference on the CPU",
  /// "plain kernel in float64" or "the kernel as given".
  std::string Describe(const Dims& dims) const;
  /// True if references of that size are computed on the CPU. Its limits are higher with a virtual
  /// GPU, where a kernel would be interpreted.
  bool UseCpu(const Dims& dims) const;

 private:
  OracleStore(Device& device, Compiler& compiler, JudgeKernels& kernels, const KernelSpec& spec)
      : device_(device), compiler_(compiler), kernels_(kernels), spec_(spec) {}
  struct Program {
    std::unique_ptr<LoadedModule> module;
    LaunchPlan plan;
  };
  /// The operator's baseline kernels for the whole task or for one of `slices` equal slices of it.
  /// Each program is built when it is first needed.
  struct BaselinePrograms {
    KernelSpec spec;
    int64_t slices = 1;
    std::unique_ptr<Program> baseline, reference;
    /// The variant whose data-dependent decisions can be perturbed; nullptr if nothing is decided
    std::unique_ptr<Program> deciding;
    std::optional<DecisionKernels> decisions;
    bool decisions_known = false;  ///< whether the two above were looked up
  };
  Result<std::unique_ptr<Program>> Build(const RenderedKernel& kernel) const;
  /// Slices the task at its own size if the baseline's workspaces exceed `most_bytes`.
  Status SplitIntoSlices(uint64_t most_bytes);
  BaselinePrograms& ProgramsFor(const Dims& dims) {
    return sliced_.slices > 1 && dims == spec_.dims ? sliced_ : whole_;
  }
  static std::optional<MemoryRange> SliceOf(const BaselinePrograms& programs, int64_t slice,
                                            const TaskBuffers& buffers, const RangeOf& elsewhere,
                                            const std::string& name);
  Status RunBaselineProgram(const BaselinePrograms& programs, const Program& program,
                            const TaskBuffers& buffers, const RangeOf& elsewhere, const char* what);
  Result<BaselinePrograms*> BaselineFor(const Dims& dims);
  Result<BaselinePrograms*> DecisionProgramsFor(const Dims& dims);
  Result<CompareStats> CompareWith(const Reference::Output& output, DeviceAddress data,
                                   double element_bound = 1e300);
  /// Moves float inputs by one unit in the last place; the same call moves them back.
  Status NudgeInputs(const TaskBuffers& buffers, uint64_t seed);
  Result<Reference> Compute(const TaskBuffers& buffers);
  Status ComputeOnCpu(const TaskBuffers& buffers, Reference& reference) const;
  Status ComputeByOperatorKernel(const TaskBuffers& buffers, Reference& reference);
  Status ComputeByUserKernel(const TaskBuffers& buffers, Reference& reference) const;
  Status Finish(const TaskBuffers& buffers, const InputInstance& instance, Reference& reference);
  Status MeasureBaseline(const TaskBuffers& buffers, const InputInstance& instance,
                         Reference& reference);
  /// Runs the baseline on inputs moved by a unit in the last place, where the input family or a
  /// small task amplifies roundings, and keeps the larger errors in `worst`.
  Status AddNudgedRuns(const TaskBuffers& buffers, const InputInstance& instance,
                       const Reference& reference, std::vector<CompareStats>& worst);
  void SetBudget(const TaskBuffers& buffers, Reference::Output& output) const;
  Result<std::vector<CompareStats>> RunBaseline(const TaskBuffers& buffers,
                                                const Reference& reference);
  Result<std::vector<CompareStats>> RunBaselineNudged(const TaskBuffers& buffers,
                                                      const Reference& reference, uint64_t seed);
  /// One buffer per output, in the order of Reference::outputs.
  using Outputs = std::vector<std::unique_ptr<Buffer>>;
  static RangeOf RangesOf(const Reference& reference, const Outputs& outputs);
  Status RunPerturbedOnce(const TaskBuffers& buffers, const Reference& reference,
                          const Outputs& outputs, uint64_t seed);
  /// Runs `deciding` on each slice.
  Status RunDecisions(const TaskBuffers& buffers, const Reference& reference,
                      const Outputs& outputs, DecisionSource decisions, uint64_t seed);
  Status RunSlices(const BaselinePrograms& programs, const PerturbedTask& task,
                   const RangeOf& elsewhere, uint64_t seed);
  /// Outputs for perturbed runs; nullopt if these would take more than half of the free memory.
  Result<std::optional<Outputs>> AllocateScratchOutputs(const TaskBuffers& buffers,
                                                        const Reference& reference);
  Status PerturbErrors(const TaskBuffers& buffers, const InputInstance& instance,
                       Reference& reference, const Outputs& outputs);
  /// One round of runs whose data-dependent decisions follow perturbed values; records what the
  /// outputs become. False if the task decides nothing or three rounds were made.
  Result<bool> SampleDecisions(const TaskBuffers& buffers, const InputInstance& instance,
                               Reference& reference, const Outputs& outputs);
  /// One draw of SampleDecisions: a run with its own decisions into `outputs`, one with the
  /// baseline's into `replayed`.
  Status DrawDecisions(const TaskBuffers& buffers, const Reference& reference,
                       const Outputs& outputs, const Outputs& replayed, uint64_t seed);
  /// Samples decisions before the first candidate is judged if the baseline's own error is too
  /// large for another order of summation: its decisions then differ from the reference's, and that
  /// must not widen the budget.
  Status SampleBaselineDecisions(const TaskBuffers& buffers, const InputInstance& instance,
                                 Reference& reference);
  Status AllocateDecisionSlots(const BaselinePrograms& programs, Reference& reference);
  /// Measures the baseline's error again, where the recorded decisions count as no error.
  Status MeasureBaselineBesideDecisions(const TaskBuffers& buffers, Reference& reference,
                                        const Outputs& outputs);
  /// Recomputes the undetermined elements of an output, and with `renew` its budget. `plain` holds
  /// the output of a baseline run.
  Status UpdateBudget(const TaskBuffers& buffers, Reference::Output& output, DeviceAddress plain,
                      bool renew);
  /// Clears `discriminates` if a trivial output (zeros, a constant, half, a copy of an input) would
  /// pass.
  Status TestTrivialOutputs(const TaskBuffers& buffers, Reference::Output& output);
  /// RunBaseline on inputs rounded to the next narrower type; restores the inputs afterwards.
  Result<std::vector<CompareStats>> RunBaselineNarrowed(const TaskBuffers& buffers,
                                                        const InputInstance& instance,
                                                        const Reference& reference);
  void Evict();

  Device& device_;
  Compiler& compiler_;
  JudgeKernels& kernels_;
  const KernelSpec& spec_;
  const Operator* operator_ = nullptr;
  BaselinePrograms whole_, sliced_;
  std::unique_ptr<Program> user_kernel_;
  std::map<std::pair<Dims, InputInstance>, Reference> cache_;
  std::list<std::pair<Dims, InputInstance>> order_;
  uint64_t limit_bytes_ = 0;
};

}  // namespace atunner
