#include "atunner/measure/statistics.h"

#include <algorithm>
#include <cmath>

#include "atunner/base/random.h"
#include "atunner/base/result.h"

namespace atunner {
namespace {

std::vector<double> Sorted(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  return sorted;
}

double MedianOfSorted(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

/// Samples that lie outside the interval on each side: the most for which fewer than that below the
/// true median have a probability of at most 2.5 %.
size_t IntervalRank(size_t count) {
  constexpr size_t kExact = 1000;  // 2^-n underflows beyond it
  const auto n = static_cast<double>(count);
  // 1.96 · √(n/4)
  if (count > kExact) return static_cast<size_t>(0.5 * n - 0.98 * std::sqrt(n)) - 1;
  double exactly = std::exp2(-n);
  double at_most = exactly;
  size_t below = 0;
  while (at_most <= 0.025) {
    ++below;
    exactly *= (n - static_cast<double>(below) + 1) / static_cast<double>(below);
    at_most += exactly;
  }
  return below == 0 ? 0 : below - 1;  // too few samples for 95 %: all of them
}

}  // namespace

double Median(std::span<const double> samples) {
  ATUNNER_CHECK(!samples.empty());
  return MedianOfSorted(Sorted(samples));
}

Interval MedianInterval(std::span<const double> samples) {
  const std::vector<double> sorted = Sorted(samples);
  ATUNNER_CHECK(!sorted.empty());
  const size_t rank = IntervalRank(sorted.size());
  return {sorted[rank], sorted[sorted.size() - 1 - rank]};
}

Comparison ComparePairs(std::span<const double> baseline_ns, std::span<const double> candidate_ns,
                        uint64_t seed) {
  ATUNNER_CHECK(!baseline_ns.empty() && baseline_ns.size() == candidate_ns.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < baseline_ns.size(); ++i)
    ratios.push_back(baseline_ns[i] / candidate_ns[i]);
  constexpr int kResamples = 1000;
  Random random(seed);
  std::vector<double> medians(kResamples);
  std::vector<double> resample(ratios.size());
  for (double& median : medians) {
    for (double& ratio : resample) ratio = ratios[random.Below(ratios.size())];
    median = Median(resample);
  }
  std::ranges::sort(medians);
  return {Median(ratios), medians[kResamples / 40], medians[kResamples - 1 - kResamples / 40],
          static_cast<int>(ratios.size())};
}

const char* StopRule::Decide(std::span<const double> samples, double seconds_spent) const {
  const auto n = static_cast<int>(samples.size());
  if (n >= maximum_samples) return "sample limit";
  if (n > 0 && seconds_spent > maximum_seconds) return "time limit";
  if (n < minimum_samples) return "";
  const Interval interval = MedianInterval(samples);
  return interval.high - interval.low <= relative_interval * Median(samples)
             ? "interval is narrow enough"
             : "";
}

bool IsRacedOut(std::span<const double> samples, double incumbent_ns) {
  if (static_cast<int>(samples.size()) < kRaceSamples) return false;
  const auto [fastest, slowest] = std::ranges::minmax(samples);
  const double spread = (slowest - fastest) / fastest;
  return fastest > incumbent_ns * (1 + std::clamp(4 * spread, 0.05, 0.25));
}

}  // namespace atunner
