// The result of a tuning session, and how it spent its time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/trial/trial.h"
#include "atunner/verify/verifier.h"

namespace atunner {

/// In seconds. Times of devices are summed over the devices and overlap with other entries.
struct TimeSpent {
  double search = 0;         ///< wall time from the first proposal to the last result
  double for_compile = 0;    ///< a device waited for the compiler
  double for_proposals = 0;  ///< choosing candidates
  double persisting = 0;     ///< storing trials and calling the listener
  double verifying = 0;
  double timing = 0;
  double handing_over = 0;  ///< to and from the judge's process
  double remeasuring = 0;   ///< the part of the three above that went to leaders
  // Outside of the search:
  double plain = 0;      ///< the plain kernel, before the search
  double finals = 0;     ///< the best with new inputs, and on the virtual GPU
  double baselines = 0;  ///< paired comparison with the plain kernel and with libraries
};

struct TuneResult {
  std::vector<Trial> trials;
  /// Indices into `trials` of the Pareto front; empty for a single objective.
  std::vector<size_t> front;
  std::optional<Trial> best;  ///< verified again with new inputs, measured at length
  std::optional<CandidateKernel> winner;
  std::optional<RenderedKernel> winner_source;
  std::vector<Baseline> baselines;
  uint64_t space_size = 0;
  double floor_ns = 0;         ///< physical floor of the task on the target
  double seconds = 0;          ///< wall time of this session
  double judge_seconds = 0;    ///< part of `seconds` in which a device judged, summed over devices
  double compile_seconds = 0;  ///< summed over threads
  TimeSpent spent;
  std::string stop_reason;
};

}  // namespace atunner
