#include "atunner/tune/leaders.h"

#include <algorithm>
#include <cmath>

#include "atunner/measure/statistics.h"
#include "atunner/tune/objectives.h"

namespace atunner {
namespace {

constexpr size_t kMostKept = 12;
constexpr double kKnownWell = 0.0015;  // relative standard error
constexpr size_t kMostSamples = 240;   // more samples will not reduce the error

const Trial& TrialOf(const std::vector<Trial>& trials, int64_t number) {
  return trials[static_cast<size_t>(number - 1)];
}

bool IsKnownWell(const Trial& trial) {
  return RelativeError(trial) <= kKnownWell || trial.measurement->samples_ns.size() >= kMostSamples;
}

}  // namespace

void Leaders::Keep(const Trial& trial, std::shared_ptr<const CandidateKernel> candidate) {
  if (!trial.verdict.correct() || !trial.measurement) return;
  kernels_[trial.number] = std::move(candidate);
  times_[trial.number] = trial.measurement->median_ns;
  if (kernels_.size() <= kMostKept) return;
  const int64_t slowest = std::ranges::max_element(times_, {}, [](const auto& one) {
                            return one.second;
                          })->first;
  kernels_.erase(slowest);
  times_.erase(slowest);
}

std::optional<int64_t> Leaders::WorthMeasuring(const std::vector<Trial>& trials) const {
  const Trial* best = nullptr;
  for (const auto& [number, kernel] : kernels_) {
    const Trial& trial = TrialOf(trials, number);
    if (trial.ObjectiveNs() && (best == nullptr || *trial.ObjectiveNs() < *best->ObjectiveNs()))
      best = &trial;
  }
  std::optional<int64_t> chosen;
  double least_known = 0;
  for (const auto& [number, kernel] : kernels_) {
    const Trial& trial = TrialOf(trials, number);
    if (!trial.ObjectiveNs() || IsKnownWell(trial)) continue;
    const double error = RelativeError(trial);
    const double ahead = std::log(*trial.ObjectiveNs() / *best->ObjectiveNs());
    if (ahead > 2 * std::hypot(error, RelativeError(*best)) || error <= least_known) continue;
    least_known = error;
    chosen = number;
  }
  return chosen;
}

Measurement Joined(const Measurement& earlier, Measurement later) {
  later.samples_ns.insert(later.samples_ns.begin(), earlier.samples_ns.begin(),
                          earlier.samples_ns.end());
  later.median_ns = Median(later.samples_ns);
  const Interval interval = MedianInterval(later.samples_ns);
  later.low_ns = interval.low;
  later.high_ns = interval.high;
  later.minimum_ns = std::min(earlier.minimum_ns, later.minimum_ns);
  later.stop_reason = "measured again while the device was free";
  if (later.energy_joules == 0) later.energy_joules = earlier.energy_joules;
  return later;
}

}  // namespace atunner
