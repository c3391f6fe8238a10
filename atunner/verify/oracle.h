// The right answer and how far an honest same-precision algorithm is from it.
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

/// The right answer to one input instance at one problem size. The values lie masked in device
/// memory, so that a candidate that searches memory for them finds noise.
struct Reference {
  struct Output {
    std::string name;
    DType dtype = DType::kFloat32;
    std::unique_ptr<Buffer> masked;  ///< float64
    uint64_t elements = 0;
    uint64_t key = 0;
    double scale = 0;  ///< ElementScale
    ErrorBudget budget;
    CompareStats self;    ///< the reference against itself: its norm, mean and rms
    CompareStats honest;  ///< the largest errors that the budget is made from
    std::unique_ptr<Buffer> choice_memory;
    ChoiceSlots choices;        ///< what it may have instead where computed values decide
    uint64_t undetermined = 0;  ///< elements that may be beyond the budget by such a choice
    /// False when zeros, a constant or a copy of an input would pass: this instance proves nothing.
    bool discriminates = true;
    /// True when even the plain kernel leaves its type's range here: no candidate can be held to
    /// this instance.
    bool overflows = false;
  };
  std::vector<Output> outputs;
  uint64_t bytes = 0;
  bool reconsidered = false;
  int choice_rounds = 0;

  /// Where an unlucky element is not averaged out, and several runs cost little.
  bool small() const;
  bool discriminates() const;
  bool overflows() const;
  /// May so much of an output be this or that, because roundings decide it, that to be right shows
  /// nothing?
  bool open() const;
};

/// Makes references and keeps the recent ones within a memory limit.
class OracleStore {
 public:
  /// Everything given must outlive it.
  static Result<std::unique_ptr<OracleStore>> Make(Device& device, Compiler& compiler,
                                                   JudgeKernels& kernels, const KernelSpec& spec);

  /// `buffers` hold the instance's inputs, freshly drawn. Outputs of `buffers` are overwritten.
  Result<const Reference*> Get(const TaskBuffers& buffers, const InputInstance& instance);

  /// A candidate errs more than its budget allows: is that the candidate's error, or was the plain
  /// kernel lucky? Runs that round as chance has it may err more, or choose otherwise, and then
  /// count. They are made once for each reference, those that choose a few times over. Outputs of
  /// `buffers` stay as they are. False when nothing was learnt.
  Result<bool> Reconsider(const TaskBuffers& buffers, const InputInstance& instance);

  /// nullptr: not computed, or forgotten.
  const Reference* Find(const Dims& dims, const InputInstance& instance) const;

  /// How the references are computed, for the report: "float64 on the CPU", "float64 kernel", "the
  /// kernel as given".
  std::string Describe(const Dims& dims) const;
  /// Whether the operator's reference is computed on the CPU there; on a virtual GPU all else is
  /// interpreted.
  bool UseCpu(const Dims& dims) const;

 private:
  OracleStore(Device& device, Compiler& compiler, JudgeKernels& kernels, const KernelSpec& spec)
      : device_(device), compiler_(compiler), kernels_(kernels), spec_(spec) {}
  struct Program {
    std::unique_ptr<LoadedModule> module;
    LaunchPlan plan;
  };
  /// The operator's plain kernels, of the task or of the equal ones it is taken apart into; each is
  /// built when it is needed.
  struct PlainPrograms {
    KernelSpec spec;
    int64_t slices = 1;
    std::unique_ptr<Program> yardstick, reference;
    std::unique_ptr<Program> choosing;  ///< nullptr with a known `choices`: nothing is chosen
    std::optional<DecisionKernels> choices;
    bool asked_for_choices = false;
  };
  Result<std::unique_ptr<Program>> Build(const RenderedKernel& kernel) const;
  /// Taken apart at the task's own size, where what plain kernels keep between them would not fit.
  Status TakeApart(uint64_t most_bytes);
  PlainPrograms& ProgramsFor(const Dims& dims) {
    return apart_.slices > 1 && dims == spec_.dims ? apart_ : whole_;
  }
  static std::optional<MemoryRange> SliceOf(const PlainPrograms& programs, int64_t slice,
                                            const TaskBuffers& buffers, const RangeOf& elsewhere,
                                            const std::string& name);
  Status RunPlain(const PlainPrograms& programs, const Program& program, const TaskBuffers& buffers,
                  const RangeOf& elsewhere, const char* what);
  Result<PlainPrograms*> YardstickFor(const Dims& dims);
  Result<PlainPrograms*> ChoosingFor(const Dims& dims);
  Result<CompareStats> CompareWith(const Reference::Output& output, DeviceAddress data,
                                   double element_bound = 1e300);
  /// The same call moves them back.
  Status NudgeInputs(const TaskBuffers& buffers, uint64_t seed);
  Result<Reference> Compute(const TaskBuffers& buffers);
  Status ComputeOnCpu(const TaskBuffers& buffers, Reference& reference) const;
  Status ComputeByOperatorKernel(const TaskBuffers& buffers, Reference& reference);
  Status ComputeByUserKernel(const TaskBuffers& buffers, Reference& reference) const;
  Status Finish(const TaskBuffers& buffers, const InputInstance& instance, Reference& reference);
  Status MeasureHonest(const TaskBuffers& buffers, const InputInstance& instance,
                       Reference& reference);
  void SetBudget(const TaskBuffers& buffers, Reference::Output& output) const;
  Result<std::vector<CompareStats>> RunHonest(const TaskBuffers& buffers,
                                              const Reference& reference);
  Result<std::vector<CompareStats>> RunHonestNudged(const TaskBuffers& buffers,
                                                    const Reference& reference, uint64_t seed);
  /// Outputs in the order of the reference's.
  using Outputs = std::vector<std::unique_ptr<Buffer>>;
  static RangeOf RangesOf(const Reference& reference, const Outputs& outputs);
  Status RunPerturbedOnce(const TaskBuffers& buffers, const Reference& reference,
                          const Outputs& outputs, uint64_t seed);
  /// The plain kernels that choose, on each of the task's parts.
  Status RunChoosing(const TaskBuffers& buffers, const Reference& reference, const Outputs& outputs,
                     Decisions decisions, uint64_t seed);
  Status RunSlices(const PlainPrograms& programs, const PerturbedTask& task,
                   const RangeOf& elsewhere, uint64_t seed);
  /// nullopt where memory does not suffice.
  Result<std::optional<Outputs>> RoomToPerturb(const TaskBuffers& buffers,
                                               const Reference& reference);
  Status PerturbErrors(const TaskBuffers& buffers, const InputInstance& instance,
                       Reference& reference, const Outputs& outputs);
  /// Which elements depend on choices that another correct kernel may take otherwise, and what they
  /// may be then. False where nothing is chosen or enough was tried.
  Result<bool> FindChoices(const TaskBuffers& buffers, const InputInstance& instance,
                           Reference& reference, const Outputs& outputs);
  /// Before anyone is judged where the plain kernel itself chose otherwise than float64: that is no
  /// error of its own.
  Status SettleChoices(const TaskBuffers& buffers, const InputInstance& instance,
                       Reference& reference);
  Status MakeRoomForChoices(const PlainPrograms& programs, Reference& reference);
  /// The plain kernel's errors once more: those of its choices are none.
  Status MeasureWithoutChoices(const TaskBuffers& buffers, Reference& reference,
                               const Outputs& outputs);
  /// The budget, and what it tells apart; `outputs`: of a plain run.
  Status BudgetWithChoices(const TaskBuffers& buffers, Reference::Output& output,
                           DeviceAddress plain, bool renew);
  Status TestNullCandidates(const TaskBuffers& buffers, Reference::Output& output);
  /// As RunHonest, on inputs of the next narrower type; the instance's own are there again
  /// afterwards.
  Result<std::vector<CompareStats>> RunHonestNarrow(const TaskBuffers& buffers,
                                                    const InputInstance& instance,
                                                    const Reference& reference);
  void Evict();

  Device& device_;
  Compiler& compiler_;
  JudgeKernels& kernels_;
  const KernelSpec& spec_;
  const Operator* operator_ = nullptr;
  PlainPrograms whole_, apart_;
  std::unique_ptr<Program> user_kernel_;
  std::map<std::pair<Dims, InputInstance>, Reference> cache_;
  std::list<std::pair<Dims, InputInstance>> order_;
  uint64_t limit_bytes_ = 0;
};

}  // namespace atunner
