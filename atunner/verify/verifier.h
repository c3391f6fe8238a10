// The only place that says "correct": only a Verifier can make a VerifiedKernel, and only a
// VerifiedKernel can be timed.
//
// A candidate is checked at every problem size that its binary serves and, on a real GPU, at the
// task's own. At each size it runs on several families of inputs. One case is
//
//     draw inputs ─► fingerprint them ─► arm guard zones, poison outputs and workspaces ─► launch
//       ─► guard zones intact? ─► inputs unchanged? ─► outputs within the error budget?
//       ─► (first case of a size) the same inputs again: equal bits?
//
// Repeated runs (repeated_runs.cpp) have nothing in common with the first but the inputs.
// The first check that fails is the verdict. docs/verification.md has the details.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/trial/verdict.h"
#include "atunner/verify/case_plan.h"
#include "atunner/verify/code/mined_values.h"
#include "atunner/verify/in_place_alias.h"
#include "atunner/verify/oracle/oracle.h"
#include "atunner/verify/own_size/own_size.h"

namespace atunner {

/// A candidate as the judge receives it: binary and launch, no host code.
struct CandidateKernel {
  CompiledModule module;
  LaunchPlan plan;
  /// Smaller problem sizes at which this very binary is valid (ScheduleTemplate::CheckDims).
  std::vector<Dims> check_dims;
};

/// Proof that a candidate passed every check on the device it names.
class VerifiedKernel {
 public:
  const CandidateKernel& kernel() const { return *kernel_; }
  const Verdict& verdict() const { return verdict_; }
  /// The module as it was loaded for the checks, which leave its global variables unchanged.
  LoadedModule& module() const { return *module_; }

 private:
  friend class Verifier;
  VerifiedKernel(std::shared_ptr<const CandidateKernel> kernel,
                 std::shared_ptr<LoadedModule> module, Verdict verdict)
      : kernel_(std::move(kernel)), module_(std::move(module)), verdict_(std::move(verdict)) {}
  std::shared_ptr<const CandidateKernel> kernel_;
  std::shared_ptr<LoadedModule> module_;
  Verdict verdict_;
};

/// The proof, or the verdict that says why there is none.
using VerifyAnswer = std::variant<VerifiedKernel, Verdict>;

/// How many checks a kernel must pass.
enum class VerifyLevel {
  kComplete,
  /// For the task's baseline kernel. Budgets come from its errors, so no input family can refuse
  /// it, and it is the slowest kernel of all: one instance per size that tells right from wrong is
  /// enough.
  kBaseline,
  /// kComplete with more work at the task's own size on the virtual GPU: for what is delivered.
  kFinal,
};

struct VerifyOptions {
  uint64_t seed = 1;
  /// Per launch on the virtual GPU. A second stands for kWorkPerSecond instructions of warps, so
  /// that the load of the machine decides nothing.
  double launch_timeout_seconds = 20;
  bool full_size = true;  ///< check at the task's own size, not only at check_dims
  WorkLimits work;        ///< users' kernels on the virtual GPU
  MemoryLimits memory;    ///< of large tasks on a GPU
};

/// Why a candidate's launch does not fit the device (registers, shared memory or threads per
/// block); nullopt if it fits.
std::optional<std::string> ResourceObstacle(const DeviceProfile& profile,
                                            const CandidateKernel& candidate,
                                            const KernelSpec& spec);

class Verifier {
 public:
  static Result<std::unique_ptr<Verifier>> Make(Device& device, Compiler& compiler, KernelSpec spec,
                                                VerifyOptions options);

  /// The proof, or the verdict that says why not. An Error means that the device or the task is
  /// unusable. After `time_limit_seconds` a size on which an oracle check has passed gets no
  /// further inputs; meant for a kernel that was verified on another device and is searched for
  /// hazards. Races and reads of unwritten memory that a user's kernel as given has itself are not
  /// held against candidates; the verdict says so.
  Result<VerifyAnswer> Verify(std::shared_ptr<const CandidateKernel> candidate,
                              VerifyLevel level = VerifyLevel::kComplete,
                              std::optional<double> time_limit_seconds = {});

  const KernelSpec& spec() const { return spec_; }
  /// Whether equal inputs must give equal bits. Not if the task allows nondeterminism, or if a
  /// user's kernel as given does not repeat its results: each run must be within the budget then.
  bool RequiresEqualBits() const {
    return !spec_.tolerance.allow_nondeterminism && oracle_->Repeats();
  }
  /// Whether a right kernel was seen to leave elements of an output as they were, e.g. the border
  /// of an image: they hold what was there before the run.
  bool leaves_unwritten() const { return leaves_unwritten_; }
  JudgeKernels& kernels() { return *kernels_; }
  /// Memory of the task at the size `dims`, allocated on first use. Slots 0 and 1 differ in every
  /// pointer. Those of a large task (MemoryLimits) lie in the same memory, so that it holds what
  /// was written to either slot last.
  Result<const TaskBuffers*> BuffersAt(const Dims& dims, uint32_t slot);
  bool IsLarge(const Dims& dims) const { return options_.memory.IsLarge(device_, spec_, dims); }
  /// Problem sizes at which this candidate is checked; the largest comes last.
  std::vector<Dims> SizesFor(const CandidateKernel& candidate) const;

 private:
  struct Session;  // the state of checking one candidate
  struct Run;      // what one launch works with

  Verifier(Device& device, Compiler& compiler, KernelSpec spec, VerifyOptions options)
      : device_(device), compiler_(compiler), spec_(std::move(spec)), options_(options) {}
  /// Why the candidate cannot be checked on a virtual GPU: interpreting the references of all input
  /// families would take hours. nullopt if it can.
  std::optional<std::string> TooLargeToExecute(const CandidateKernel& candidate) const;
  bool Prepare(Session& session) const;
  /// Verify with the present `hazards_`.
  Result<VerifyAnswer> VerifyOnce(std::shared_ptr<const CandidateKernel> candidate,
                                  VerifyLevel level, std::optional<double> time_limit_seconds);
  Status CheckTolerance(Session& session);
  std::vector<Case> PlannedCases(const CandidateKernel& candidate);
  Result<bool> RunCases(Session& session, VerifyLevel level, double ends);
  Result<bool> RunSkippedCases(Session& session);
  Result<bool> RunCase(Session& session, const Case& one);
  /// For a case on which nothing can be compared: the same with the candidate's own constants, if
  /// it has those of others too.
  Result<bool> RunWithOwnConstants(Session& session, const Case& one);
  /// False for a check size at which the kernel as given itself fails: a size that was derived from
  /// the task's own may be none that the kernel is made for. Only on the virtual GPU, which
  /// survives that.
  Result<bool> IsValidSize(Session& session, const Case& one);
  /// All cases; decides whether the task's own size is checked in part. `ends`: see RunCases.
  Result<std::vector<Case>> CasesFor(Session& session, double ends);
  /// True if a user's kernel is too slow on the virtual GPU to be compared at its own size on all
  /// inputs.
  Result<bool> IsOwnSizeInPart(const CandidateKernel& candidate);
  Result<OwnSizeCheck*> OwnSize();
  /// A case at the task's own size of which all is executed only where that is affordable.
  Result<bool> RunAtOwnSize(Session& session, const Case& one);
  /// Makes the verdict kSampled or kUnchecked unless all blocks ran at the task's own size.
  void StateCoverage(Session& session) const;
  /// One launch and all checks of it; then the repeated runs, if the case has some.
  Result<bool> Examine(Session& session, const Case& one, const Run& run,
                       const Reference& reference);
  /// The same without repeated runs.
  Result<bool> ExamineOnce(Session& session, const Case& one, const Run& run,
                           const Reference& reference);
  /// nullptr if the case is optional, or at a derived size, and the kernel as given does not run on
  /// it, which is recorded.
  Result<const Reference*> ReferenceOf(Session& session, const TaskBuffers& buffers,
                                       const Case& one);
  /// Arms the guard zones, poisons memory, and copies symbols.
  Result<bool> PrepareLaunch(Session& session, const Case& one, const Run& run);
  Result<bool> CheckLaunch(Session& session, const Case& one, const Run& run);
  /// CheckLaunch, and the module's global variables must be unchanged after it.
  Result<bool> CheckLaunchAndState(Session& session, const Case& one, const Run& run);
  Result<bool> CheckInputs(Session& session, const Case& one, const TaskBuffers& buffers,
                           const std::vector<uint64_t>& before);
  Result<CompareStats> CompareOutput(const Run& run, const Reference& reference, size_t number);
  Result<bool> CheckOutputs(Session& session, const Case& one, const Run& run,
                            const Reference& reference);
  Result<bool> CheckOutput(Session& session, const Case& one, const Run& run,
                           const Reference& reference, size_t number);
  /// Outputs beside those of slot 0, for two runs that are compared with each other. Those of a
  /// large task are put into `own` and are gone with it.
  Result<const TaskBuffers*> BuffersOfRepeat(const Case& one, std::unique_ptr<TaskBuffers>& own);
  /// The same inputs again, in all else different circumstances, must give equal bits.
  Result<bool> CheckRepeat(Session& session, const Case& one, const Run& first,
                           const Reference& reference);
  /// A repeated run, whose results must be those of the first or, where the task allows others,
  /// within the error budget.
  Result<bool> CheckAgain(Session& session, const Case& one, const Run& first, const Run& again,
                          const Reference& reference);
  /// An in-out tensor and an input that are one buffer, where the kernel as given allows that.
  Result<bool> CheckInPlace(Session& session, const std::vector<Dims>& sizes);
  Result<std::vector<uint64_t>> FingerprintInputs(const TaskBuffers& buffers);

  Device& device_;
  Compiler& compiler_;
  KernelSpec spec_;
  VerifyOptions options_;
  std::unique_ptr<JudgeKernels> kernels_;
  std::unique_ptr<OracleStore> oracle_;
  std::unique_ptr<InPlaceAlias> alias_;
  std::map<std::pair<Dims, uint32_t>, std::unique_ptr<TaskBuffers>> buffers_;
  bool tolerance_checked_ = false;
  std::map<Dims, bool> valid_sizes_;  ///< see IsValidSize
  /// Instructions of warps of the largest launch that ended; 0 = none has. Virtual GPU only.
  uint64_t most_work_ = 0;
  bool own_size_passed_ = false;  ///< some kernel was right at the task's own size
  bool leaves_unwritten_ = false;
  std::unique_ptr<OwnSizeCheck> own_size_;
  MinedValues given_constants_;  ///< of the kernel as given
  MinedPool candidates_constants_;
  bool given_may_not_end_ = false;  ///< its integers may be counts of its loops
  /// Why the kernel as given does not run on optional inputs
  std::map<std::pair<Dims, InputInstance>, std::string> unusable_;
  std::map<std::pair<Dims, InputInstance>, std::vector<uint64_t>> input_prints_;
  /// Bits of HazardGroup that candidates may not have. A user's kernel may have some as given, e.g.
  /// races of a reduction that relies on warps in lockstep.
  uint8_t hazards_ = kAllHazards;
  bool given_examined_ = false;  ///< for hazards, see Verify
};

}  // namespace atunner
