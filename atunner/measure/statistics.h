// Robust statistics of timing samples. Times are in nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "atunner/model/trial/performance.h"

namespace atunner {

double Median(std::span<const double> samples);

struct Interval {
  double low = 0;
  double high = 0;
};

/// Distribution-free 95 % confidence interval of the median from order statistics (binomial);
/// from minimum to maximum with fewer than six samples. Source: Le Boudec,
/// "Performance Evaluation", theorem 2.1.
Interval MedianInterval(std::span<const double> samples);

/// Ratio of paired times baseline/candidate: median of the pairs' ratios with a 95 % percentile
/// bootstrap interval. The spans have equal, non-zero length. Deterministic by `seed`.
Comparison ComparePairs(std::span<const double> baseline_ns, std::span<const double> candidate_ns,
                        uint64_t seed);

/// When to stop sampling.
struct StopRule {
  /// Stop when the interval of the median is narrower than this share of it
  double relative_interval = 0.01;
  int minimum_samples = 6;
  int maximum_samples = 40;
  double maximum_seconds = 5;  ///< wall time, including preparation

  /// Empty while sampling should go on, else the reason.
  const char* Decide(std::span<const double> samples, double seconds_spent) const;
};

constexpr int kRaceSamples = 3;

/// True if a candidate cannot win any more: the fastest of at least kRaceSamples samples is slower
/// than the incumbent's median by four times the samples' own spread, by 5 % at least and 25 % at
/// most. Losers cost few samples that way.
bool IsRacedOut(std::span<const double> samples, double incumbent_ns);

}  // namespace atunner
