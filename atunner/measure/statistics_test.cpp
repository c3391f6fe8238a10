// Statistics against exact probabilities and simulated data.
#include "atunner/measure/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "atunner/base/random.h"

namespace atunner {
namespace {

std::vector<double> Iota(int n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

/// Skewed like real times: most near 100, a tail above. The median is 100.
double SkewedTime(Random& random) { return 100.0 * std::exp(0.2 * random.Normal()); }

std::vector<int> Counts() {
  std::vector<int> counts(300 - 5);
  std::iota(counts.begin(), counts.end(), 6);
  counts.push_back(999);
  counts.push_back(1000);
  return counts;
}

TEST(Median, OfOddEvenAndUnsorted) {
  EXPECT_DOUBLE_EQ(Median(std::vector<double>{7}), 7);
  EXPECT_DOUBLE_EQ(Median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(Median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(Median(std::vector<double>{1, 1, 1, 1e9}), 1) << "an outlier does not move it";
}

TEST(MedianInterval, OfFewSamplesIsTheWholeRange) {
  const Interval interval = MedianInterval(std::vector<double>{5, 2, 9, 4, 7});
  EXPECT_DOUBLE_EQ(interval.low, 2);
  EXPECT_DOUBLE_EQ(interval.high, 9);
}

// The number of samples below the true median is binomial with p = 1/2, so the coverage of two
// order statistics is a sum of binomial coefficients, whatever the distribution. Samples 0 … n-1
// make the interval's ends their own ranks.
TEST(MedianInterval, CoversAtLeast95PercentForEveryCount) {
  for (int n : Counts()) {
    const Interval interval = MedianInterval(Iota(n));
    double outside = 0;
    double probability = std::exp2(-n);
    for (int below = 0; below <= n; ++below) {
      // All of ranks 0 … below-1 are under the true median.
      if (below <= interval.low || below > interval.high) outside += probability;
      probability *= static_cast<double>(n - below) / (below + 1);
    }
    EXPECT_LE(outside, 0.05) << n << " samples";
    if (n >= 30) {
      EXPECT_GE(outside, 0.015) << n << " samples: wider than it has to be";
    }
  }
}

TEST(MedianInterval, OfMoreThanAThousandSamplesGoesOnWhereTheExactOneEnds) {
  const Interval exact = MedianInterval(Iota(1000));
  const Interval approximate = MedianInterval(Iota(1001));
  EXPECT_NEAR(approximate.low, exact.low, 1.5);
  EXPECT_NEAR(approximate.high, exact.high, 1.5);
}

TEST(MedianInterval, CoversTheTrueMedianOfSkewedTimes) {
  Random random(11);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(12);
    for (double& sample : samples) sample = SkewedTime(random);
    const Interval interval = MedianInterval(samples);
    covered += interval.low <= 100 && 100 <= interval.high;
  }
  EXPECT_GE(covered, kTrials * 95 / 100);
  EXPECT_LT(covered, kTrials) << "an interval that always covers is none";
}

TEST(ComparePairs, GivesTheRatioAndItsInverse) {
  const std::vector<double> slow = {200, 220, 190, 210, 205};
  std::vector<double> fast;
  for (double ns : slow) fast.push_back(ns / 2);
  const Comparison comparison = ComparePairs(slow, fast, 1);
  EXPECT_DOUBLE_EQ(comparison.ratio, 2);
  EXPECT_DOUBLE_EQ(comparison.low, 2);
  EXPECT_DOUBLE_EQ(comparison.high, 2);
  EXPECT_EQ(comparison.pairs, 5);
  EXPECT_DOUBLE_EQ(ComparePairs(fast, slow, 1).ratio, 0.5);
}

TEST(ComparePairs, PairingRemovesWhatBothShare) {
  // Clocks that drift by a factor of two over the run, equally for both.
  std::vector<double> baseline;
  std::vector<double> candidate;
  for (int i = 0; i < 11; ++i) {
    const double drift = 1.0 + 0.1 * i;
    baseline.push_back(110 * drift);
    candidate.push_back(100 * drift);
  }
  const Comparison comparison = ComparePairs(baseline, candidate, 3);
  EXPECT_NEAR(comparison.ratio, 1.1, 1e-12);
  EXPECT_NEAR(comparison.high - comparison.low, 0, 1e-12);
}

TEST(ComparePairs, IsDeterministicAndItsIntervalCoversTheTruth) {
  Random random(5);
  int covered = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> baseline(15);
    std::vector<double> candidate(15);
    for (double& ns : baseline) ns = 1.25 * SkewedTime(random);
    for (double& ns : candidate) ns = SkewedTime(random);
    const Comparison first = ComparePairs(baseline, candidate, 9);
    const Comparison second = ComparePairs(baseline, candidate, 9);
    EXPECT_EQ(first.low, second.low);
    EXPECT_EQ(first.high, second.high);
    EXPECT_LE(first.low, first.ratio);
    EXPECT_LE(first.ratio, first.high);
    covered += first.low <= 1.25 && 1.25 <= first.high;
  }
  EXPECT_GE(covered, kTrials * 90 / 100);
}

TEST(StopRule, StopsForTheReasonItNames) {
  const StopRule rule{
      .relative_interval = 0.01, .minimum_samples = 6, .maximum_samples = 10, .maximum_seconds = 5};
  const std::vector<double> steady(6, 100.0);
  const std::vector<double> noisy = {100, 120, 90, 130, 80, 110};
  EXPECT_STREQ(rule.Decide({}, 100), "") << "never without a sample";
  EXPECT_STREQ(rule.Decide(std::span(steady).first(5), 0), "") << "five samples say nothing yet";
  EXPECT_STREQ(rule.Decide(steady, 0), "interval is narrow enough");
  EXPECT_STREQ(rule.Decide(noisy, 0), "");
  EXPECT_STREQ(rule.Decide(noisy, 5.1), "time limit");
  EXPECT_STREQ(rule.Decide(std::vector<double>(10, 100.0), 0), "sample limit");
}

TEST(Race, AsksForMoreThanTheSamplesOwnSpread) {
  EXPECT_TRUE(IsRacedOut(std::vector{106.0, 106.1, 106.2}, 100));
  EXPECT_FALSE(IsRacedOut(std::vector{104.0, 104.1, 104.2}, 100)) << "less than 5 % is not clear";
  EXPECT_FALSE(IsRacedOut(std::vector{110.0, 114.0, 115.0}, 100))
      << "they differ as much among themselves";
  EXPECT_TRUE(IsRacedOut(std::vector{126.0, 200.0, 300.0}, 100))
      << "a quarter is clear, however noisy";
  EXPECT_FALSE(IsRacedOut(std::vector{300.0, 300.0}, 100)) << "two samples are too few";
}

}  // namespace
}  // namespace atunner
