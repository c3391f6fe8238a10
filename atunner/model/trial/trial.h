// The recorded result of one candidate: what was compiled, verified and timed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/model/candidate/candidate.h"
#include "atunner/model/kernel/compiled_module.h"
#include "atunner/model/trial/performance.h"
#include "atunner/model/trial/verdict.h"

namespace atunner {

enum class Evidence : uint8_t { kMeasured, kPredicted };
std::string_view Name(Evidence evidence);  // "measured", "predicted"

struct Budget {
  std::optional<int64_t> trials;
  std::optional<double> seconds;
  /// "120s", "2m", "500" or "500 trials" (trials), "200,5m" (whichever ends first).
  static Result<Budget> Parse(std::string_view text);
  std::string ToString() const;
};

struct Trial {
  int64_t number = 0;  ///< 1, 2, … within the run
  Candidate candidate;
  Verdict verdict;
  std::optional<Measurement> measurement;  ///< correct and timed on the GPU
  std::optional<Estimate> estimate;        ///< correct and predicted
  std::vector<KernelResources> resources;
  Digest binary;
  /// Number of the trial with the same binary and launches, whose result this one has; 0 = none.
  int64_t same_as = 0;
  /// Bytes of the workspaces, plus the shared memory of the largest block among the launches.
  int64_t memory_bytes = 0;
  double compile_seconds = 0;
  double judge_seconds = 0;
  double verify_seconds = 0;  ///< part of judge_seconds
  double timing_seconds = 0;  ///< part of judge_seconds
  /// "same binary and launch as trial 12", "raced out after 3 samples", …
  std::string note;

  /// The candidate's configuration; one without values when the candidate is a whole kernel.
  const Configuration& configuration() const;
  const std::string& proposer() const { return candidate.provenance.proposer; }
  /// The time the search minimises, ns: the measurement's median or the estimate; nullopt when the
  /// trial failed.
  std::optional<double> ObjectiveNs() const;
  /// Energy of one run of the kernel, for the whole board, measured or predicted; nullopt when the
  /// trial failed or the energy is not known.
  std::optional<double> EnergyJoules() const;
};

/// Another kernel for the same task, measured or predicted in the same run.
struct Baseline {
  std::string name;  ///< "naive", "user", "cuBLAS", "cuDNN"
  Verdict verdict;
  std::optional<Measurement> measurement;
  std::optional<Estimate> estimate;
  std::optional<Comparison> comparison;  ///< the best kernel against it, paired
  std::string note;                      ///< why there is no number, if there is none
  std::optional<double> ObjectiveNs() const;
};

}  // namespace atunner
