#include "atunner/replay/baseline.h"

#include <algorithm>

namespace atunner {
namespace {

/// The expected minimum of `draws` values drawn without replacement from n sorted ones:
/// sorted[0] + Σ_j P(none of the best j + 1 is drawn) (sorted[j + 1] − sorted[j]), where the
/// probability that i draws miss the best j is C(n − j, i) / C(n, i).
double ExpectedBest(const std::vector<double>& sorted, uint64_t draws) {
  const auto n = static_cast<double>(sorted.size());
  const auto i = static_cast<double>(draws);
  double expected = sorted[0];
  double missed = 1;
  for (size_t j = 0; j + 1 < sorted.size() && missed > 1e-14; ++j) {
    missed *= std::max(0.0, n - static_cast<double>(j) - i) / (n - static_cast<double>(j));
    expected += missed * (sorted[j + 1] - sorted[j]);
  }
  return expected;
}

std::vector<double> SortedTimes(std::span<const std::optional<double>> times) {
  std::vector<double> sorted;
  for (const auto& time : times) {
    if (time) sorted.push_back(*time);
  }
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace

Result<SearchBaseline> BaselineOf(std::span<const std::optional<double>> times, uint64_t budget) {
  const std::vector<double> sorted = SortedTimes(times);
  if (sorted.size() < 2) return Invalid("fewer than two configurations were measured");
  SearchBaseline baseline;
  const size_t n = sorted.size();
  baseline.best = sorted.front();
  baseline.worst = sorted.back();
  baseline.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  baseline.target = baseline.best + 0.05 * (baseline.median - baseline.best);
  const auto reached = static_cast<uint64_t>(std::ranges::upper_bound(sorted, baseline.target) -
                                             sorted.begin());
  // In a random order of n values, the first of `reached` given ones is expected at this position.
  baseline.budget = budget > 0 ? budget : std::max<uint64_t>(1, (n + 1) / (reached + 1));
  for (uint64_t i = 1; i <= baseline.budget; ++i)
    baseline.random.push_back(ExpectedBest(sorted, i));
  return baseline;
}

double ScoreOf(const SearchBaseline& baseline, std::span<const double> curve) {
  double sum = 0;
  size_t counted = 0;
  for (size_t i = 0; i < std::min(curve.size(), baseline.random.size()); ++i) {
    const double room = baseline.random[i] - baseline.best;
    if (room <= 1e-9 * (baseline.median - baseline.best)) continue;
    sum += (baseline.random[i] - curve[i]) / room;
    ++counted;
  }
  return counted == 0 ? 0 : sum / static_cast<double>(counted);
}

}  // namespace atunner
