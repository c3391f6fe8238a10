// The fastest kernels of a session. A device that has no new candidate measures them again.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "atunner/judge/judge.h"
#include "atunner/model/trial/trial.h"

namespace atunner {

/// The kernels of the fastest trials, by number within the run.
class Leaders {
 public:
  void Keep(const Trial& trial, std::shared_ptr<const CandidateKernel> candidate);
  /// Number of the trial with the largest standard error among those that may be the best; nullopt
  /// when all are known well.
  std::optional<int64_t> WorthMeasuring(const std::vector<Trial>& trials) const;
  std::shared_ptr<const CandidateKernel> KernelOf(int64_t number) const {
    return kernels_.at(number);
  }

 private:
  std::map<int64_t, std::shared_ptr<const CandidateKernel>> kernels_;
  std::map<int64_t, double> times_;  ///< ns, as first measured
};

/// A measurement with the samples of both. The conditions are those of the later one.
Measurement Joined(const Measurement& earlier, Measurement later);

}  // namespace atunner
