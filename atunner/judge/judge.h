// The interface of judges: a compiled candidate in, its verdict and its time out. A caller sees the
// same whether the judge works in this process or in a runner that may be killed and restarted.
// Candidates that are not compiled yet go through candidate_compiler.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/trial/trial.h"
#include "atunner/verify/verifier.h"

namespace atunner {

/// How to examine a candidate, beyond verifying it.
struct JudgeOrder {
  bool time = true;       ///< measure or predict when correct
  bool thorough = false;  ///< final samples instead of screening samples
  bool energy = false;    ///< measure or predict the energy of a run too
  /// The candidate is the task's plain kernel, from whose errors the error budgets are derived.
  bool plain = false;
  std::optional<double> incumbent_ns;  ///< race against it
  uint64_t seed = 1;                   ///< inputs of verification and timing
  /// After this time further inputs of a size that was examined are left out (Verifier::Verify).
  std::optional<double> time_limit_seconds = {};
};

struct JudgeAnswer {
  Verdict verdict;
  std::optional<Measurement> measurement;
  std::optional<Estimate> estimate;
  std::string note;
  double verify_seconds = 0;  ///< time in the verifier
  double timing_seconds = 0;
};

/// Settings of a judging session, fixed for one task.
struct JudgeTask {
  KernelSpec spec;
  uint64_t seed = 1;
  double launch_timeout_seconds = 20;
  /// Inputs follow from the seeds alone, as tests of atunner's own kernels need it. Otherwise a
  /// secret is mixed in, and no candidate can contain the answers.
  bool reproducible = false;
};

/// Metrics of a launch by name, as CUPTI counted them.
using LaunchMetrics = std::map<std::string, double, std::less<>>;

class Judge {
 public:
  virtual ~Judge() = default;
  /// Must be called first; replaces an earlier task.
  virtual Status Begin(const JudgeTask& task) = 0;
  virtual Result<JudgeAnswer> Examine(const CandidateKernel& candidate,
                                      const JudgeOrder& order) = 0;
  /// Both are verified again, `baseline` briefly (VerifyLevel::kBaseline), then timed in at most
  /// `pairs` pairs: slow kernels in fewer. kUnsupported on a device that only predicts.
  virtual Result<Comparison> Compare(const CandidateKernel& baseline,
                                     const CandidateKernel& candidate, int pairs,
                                     uint64_t seed) = 0;
  /// A vendor library's way to do the task ("cuBLAS", "cuDNN"), compared with `candidate` in pairs.
  /// A Baseline without a number says why in its note.
  virtual Result<Baseline> CompareVendor(const std::string& name, const CandidateKernel& candidate,
                                         int pairs, uint64_t seed) = 0;
  /// The GPU's counters of each launch of the candidate, which is verified briefly first; L2 is
  /// empty before the first launch. Metrics that the chip lacks are left out. kUnsupported on a
  /// device that only predicts, kUnavailable where nobody may count, which the text explains.
  virtual Result<std::vector<LaunchMetrics>> Count(const CandidateKernel& candidate,
                                                   std::span<const std::string> metrics,
                                                   uint64_t seed);
};

}  // namespace atunner
