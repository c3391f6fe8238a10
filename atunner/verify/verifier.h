// The only place that says "correct". Nothing else can make a VerifiedKernel, and timing takes
// nothing else.
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
#include "atunner/verify/oracle.h"

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
  /// As it was loaded for the checks, which left its variables as they were.
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

/// How much is asked of a candidate.
enum class Scrutiny {
  kComplete,
  /// For the task's own plain kernel: budgets come from its errors, so no family of inputs can
  /// refuse it. One drawing of inputs per size that tells right from wrong; it is the slowest
  /// kernel of all.
  kPlain,
};

struct VerifyOptions {
  uint64_t seed = 1;
  double launch_timeout_seconds = 20;  ///< one launch on the virtual GPU
  bool full_size = true;               ///< check at the task's own size, not only at check_dims
  /// Virtual GPU: a grid whose reference took longer than this is checked on a sample of its
  /// blocks.
  double sample_above_seconds = 1.0;
};

/// How much of a candidate's launch a device can hold: registers, shared memory, threads. nullopt =
/// it fits.
std::optional<std::string> ResourceObstacle(const DeviceProfile& profile,
                                            const CandidateKernel& candidate,
                                            const KernelSpec& spec);

class Verifier {
 public:
  static Result<std::unique_ptr<Verifier>> Make(Device& device, Compiler& compiler, KernelSpec spec,
                                                VerifyOptions options);

  /// The proof, or the verdict that says why not. An Error means that the device or the task is
  /// unusable. After `patience_seconds` further inputs of a size that has told right from wrong are
  /// left out: for who has verified the kernel elsewhere and asks for hazards.
  Result<std::variant<VerifiedKernel, Verdict>> Verify(
      std::shared_ptr<const CandidateKernel> candidate, Scrutiny scrutiny = Scrutiny::kComplete,
      std::optional<double> patience_seconds = {});

  const KernelSpec& spec() const { return spec_; }
  JudgeKernels& kernels() { return *kernels_; }
  /// Memory at the task's own size; `slot` 0 or 1 differ in every pointer. Made on first use.
  Result<const TaskBuffers*> BuffersAt(const Dims& dims, uint32_t slot);
  /// Problem sizes at which this candidate is checked.
  std::vector<Dims> SizesFor(const CandidateKernel& candidate) const;

 private:
  struct Case {
    Dims dims;
    InputInstance instance;
    uint32_t slot = 0;
    bool repeat = false;
  };
  struct Session;  // one candidate under examination

  Verifier(Device& device, KernelSpec spec, VerifyOptions options)
      : device_(device), spec_(std::move(spec)), options_(options) {}
  /// Why nothing can be compared here in useful time: references of all input families would take
  /// hours to interpret.
  std::optional<std::string> TooLargeToExecute(const CandidateKernel& candidate) const;
  std::vector<Case> Plan(const CandidateKernel& candidate) const;
  Result<bool> RunCase(Session& session, const Case& one);
  /// One launch, of the session's blocks, and all that is asked of it. The inputs are drawn.
  Result<bool> Examine(Session& session, const Case& one, const TaskBuffers& buffers,
                       const Reference& reference, const BoundPlan& plan);
  Result<const Reference*> ReferenceOf(const TaskBuffers& buffers, const Case& one);
  Result<bool> CheckLaunch(Session& session, const Case& one, const TaskBuffers& buffers,
                           const BoundPlan& plan);
  Result<bool> CheckInputs(Session& session, const Case& one, const TaskBuffers& buffers,
                           const std::vector<uint64_t>& before);
  Result<CompareStats> CompareOutput(const Session& session, const TaskBuffers& buffers,
                                     const Reference::Output& output);
  Result<bool> CheckOutputs(Session& session, const Case& one, const TaskBuffers& buffers,
                            const Reference& reference);
  Result<bool> CheckRepeat(Session& session, const Case& one, const TaskBuffers& buffers,
                           const BoundPlan& plan);
  Result<std::vector<uint64_t>> FingerprintWhere(const TaskBuffers& buffers, bool outputs);

  Device& device_;
  KernelSpec spec_;
  VerifyOptions options_;
  std::unique_ptr<JudgeKernels> kernels_;
  std::unique_ptr<OracleStore> oracle_;
  std::map<std::pair<Dims, uint32_t>, std::unique_ptr<TaskBuffers>> buffers_;
  std::map<Dims, double> reference_seconds_;
  std::map<std::pair<Dims, InputInstance>, std::vector<uint64_t>> input_prints_;
};

}  // namespace atunner
