// Checks a candidate of a user's kernel at the task's own size on the virtual GPU, where comparing
// every element on all input families would take hours.
//
// What was not executed is not correct. So all blocks run where their work is affordable, and every
// element that the kernel as given writes must be written and equal. Else a sample of blocks runs,
// and the verdict is kSampled with the share.
//
//     kernel as given: sample of its blocks ─► work of all ─► affordable? all blocks
//                          │ elements E, values
//     candidate: the blocks beside them ─► work of all ─► affordable, or anything odd? all blocks
//                          │ elements F, values                    │
//                          ▼                                       ▼
//              equal on E ∩ F? as many               E within F? equal on E?
//              elements per grid as given?
//
// Work is counted in instructions of warps, so that no verdict depends on the load of the machine.
// Odd is: fewer elements per grid than the kernel as given writes, none in common, a difference.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/model/trial/verdict.h"
#include "atunner/verify/budget/baseline.h"
#include "atunner/verify/budget/reference.h"
#include "atunner/verify/own_size/own_size_kernel.h"

namespace atunner {

/// How much work a check may do.
enum class Effort : uint8_t {
  kSample,     ///< a sample of the blocks
  kScreening,  ///< all blocks if that takes about a second
  kFinal,      ///< all blocks if that takes some seconds
};

/// Limits in instructions of warps. The virtual GPU executes some 25 million a second on each core.
struct WorkLimits {
  /// What the kernel as given and the judge's own kernels may take on one instance; beyond it not
  /// every element is compared on every instance. There are some twenty, each with a reference in
  /// float64, which takes several times as long.
  double compare_all = 1 << 22;
  double sample = 1 << 24;     ///< of a sample of blocks
  double screening = 1 << 25;  ///< of all blocks, Effort::kScreening
  double final = 1 << 27;      ///< of all blocks, Effort::kFinal, and where a sample is odd
};

struct OwnSizeFindings {
  /// kCorrect: every block ran. kSampled: nothing is wrong as far as blocks ran. Else what is
  /// wrong.
  VerdictKind kind = VerdictKind::kCorrect;
  std::string reason;  ///< empty for kCorrect
  Coverage coverage;
  double error = 0;  ///< of the element that differs most, see CompareElements
  double bound = 0;
};

class OwnSizeCheck {
 public:
  /// kInvalidInput if the task's oracle is no kernel, or it does not compile. Everything in
  /// `context` must outlive it.
  static Result<std::unique_ptr<OwnSizeCheck>> Make(const OracleContext& context,
                                                    const WorkLimits& limits);

  /// Runs a candidate. `element_bound`: see CompareElements. `hazards`: bits of HazardGroup that
  /// it may not have.
  Result<OwnSizeFindings> Run(LoadedModule& module, const LaunchPlan& plan,
                              const InputInstance& instance, Effort effort, double element_bound,
                              uint8_t hazards = kAllHazards);
  /// Warp instructions of the kernel as given on all blocks; an estimate from some of them.
  Result<double> WorkOfKernelAsGiven(const InputInstance& instance);

 private:
  /// The kernel as given on one instance.
  struct Given {
    OwnSizeRun run;
    std::vector<uint64_t> blocks;  ///< that ran; empty = all
    std::vector<WrittenValues> values;
    std::optional<bool> settled;  ///< see IsSettled
    /// Elements that all blocks write, as far as is known.
    double elements = 0;
  };
  struct Comparison;
  class Judging;  // of one candidate

  OwnSizeCheck(const OracleContext& context, const WorkLimits& limits)
      : oracle_(context), limits_(limits) {}
  double WorkAllowed(Effort effort) const;
  Status Begin();
  Result<Given*> GivenOn(const InputInstance& instance);
  /// Runs all blocks of the kernel as given if that takes at most `most_work`.
  Status Complete(Given& given, const InputInstance& instance, double most_work);
  Status Keep(Given& given, OwnSizeRun run);
  /// True if the values of the blocks that ran are final: the same for other earlier contents of
  /// the outputs. The parts of a sum that blocks add to are not.
  Result<bool> IsSettled(Given& given, const InputInstance& instance);

  OracleContext oracle_;
  WorkLimits limits_;
  std::unique_ptr<OwnSizeMemory> memory_;
  std::unique_ptr<OwnSizeContext> context_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<OwnSizeKernel> as_given_;
  std::map<InputInstance, Given> given_;
};

/// "m = 64, n = 4096".
std::string TextOf(const Dims& dims);
/// "at its own size (n = 16777216)".
std::string AtOwnSize(const Dims& dims);

}  // namespace atunner
