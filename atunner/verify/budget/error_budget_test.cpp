// The documented limits: k = 4 times the error of the baseline kernel, with floors in units of
// roundoff.
#include "atunner/verify/budget/error_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace atunner {
namespace {

using testing::HasSubstr;

CompareStats BaselineStats(double norm, double worst) {
  CompareStats stats;
  stats.squared_difference = norm * norm;
  stats.squared_reference = 1;
  stats.worst = worst;
  stats.finite = stats.elements = 1000;
  return stats;
}

TEST(ErrorBudget, HasFloorsWhereTheBaselineIsExact) {
  const auto floor_of = [](DType dtype) {
    return BudgetFromBaseline(BaselineStats(0, 0), dtype, {});
  };
  EXPECT_DOUBLE_EQ(floor_of(DType::kFloat32).norm, 4 * 2.0 * 0x1p-24);
  EXPECT_DOUBLE_EQ(floor_of(DType::kFloat32).element, 4 * 4.0 * 0x1p-24);
  EXPECT_DOUBLE_EQ(floor_of(DType::kFloat16).norm, 4 * 0.6 * 0x1p-11);
  EXPECT_DOUBLE_EQ(floor_of(DType::kFloat16).element, 4 * 1.05 * 0x1p-11);
  EXPECT_DOUBLE_EQ(floor_of(DType::kBFloat16).norm, 4 * 0.6 * 0x1p-8);
  EXPECT_DOUBLE_EQ(floor_of(DType::kBFloat16).element, 4 * 1.05 * 0x1p-8);
}

TEST(ErrorBudget, IsFourTimesTheBaselinesErrorAboveTheFloors) {
  const ErrorBudget budget = BudgetFromBaseline(BaselineStats(1e-3, 5e-3), DType::kFloat32, {});
  EXPECT_DOUBLE_EQ(budget.norm, 4e-3);
  EXPECT_DOUBLE_EQ(budget.element, 2e-2);
  EXPECT_DOUBLE_EQ(budget.baseline_norm, 1e-3);
  EXPECT_DOUBLE_EQ(budget.baseline_element, 5e-3);
  Tolerance twice;
  twice.budget_factor = 2;
  EXPECT_DOUBLE_EQ(BudgetFromBaseline(BaselineStats(1e-3, 5e-3), DType::kFloat32, twice).norm,
                   2e-3);
}

TEST(ErrorBudget, StrictIsThePlainKernelsOwnAndFastTheNextNarrowerTypes) {
  const auto budget = [](double norm, DType dtype, Accuracy accuracy) {
    return BudgetFromBaseline(BaselineStats(norm, norm), dtype, {}, accuracy).norm;
  };
  EXPECT_DOUBLE_EQ(budget(1e-3, DType::kFloat32, Accuracy::kStrict), 1e-3);
  EXPECT_DOUBLE_EQ(budget(0, DType::kFloat32, Accuracy::kStrict), 2.0 * 0x1p-24);
  EXPECT_DOUBLE_EQ(budget(0, DType::kFloat32, Accuracy::kFast), 4 * 0.6 * 0x1p-11) << "TF32";
  EXPECT_DOUBLE_EQ(budget(0, DType::kFloat64, Accuracy::kFast), 4 * 0.6 * 0x1p-24);
  EXPECT_DOUBLE_EQ(budget(0, DType::kBFloat16, Accuracy::kFast), 4 * 2.0 * 0x1p-8)
      << "arithmetic in the type itself";
  EXPECT_DOUBLE_EQ(budget(1e-2, DType::kFloat32, Accuracy::kFast), 4e-2);
  EXPECT_EQ(budget(1e-2, DType::kInt32, Accuracy::kFast), 0) << "integers are equal or wrong";
}

TEST(ErrorBudget, OfFewNumbersLeavesRoomForAnotherOrderOfSummation) {
  CompareStats one = BaselineStats(1e-9, 1e-9);
  one.elements = one.finite = 1;
  const ErrorBudget budget = BudgetFromBaseline(one, DType::kFloat32, {});
  EXPECT_DOUBLE_EQ(budget.norm, 256 * 0x1p-24) << "the baseline kernel happened to be exact";
  EXPECT_DOUBLE_EQ(budget.element, 256 * 0x1p-24);
  EXPECT_DOUBLE_EQ(BudgetFromBaseline(one, DType::kFloat32, {}, Accuracy::kStrict).norm,
                   2 * 0x1p-24);
}

TEST(ErrorBudget, OfOneSumIsWhatAddingUpInOrderErrsBy) {
  const auto budget_of = [](double terms, double error) {
    CompareStats one = BaselineStats(error * 0x1p-24, error * 0x1p-24);
    one.elements = one.finite = 1;
    return BudgetFromBaseline(one, DType::kFloat32, {}, Accuracy::kDefault, {.few_sums = terms})
               .norm /
           0x1p-24;
  };
  EXPECT_DOUBLE_EQ(budget_of(64, 0), 4 * 0.3 * 8 * 5);
  EXPECT_DOUBLE_EQ(budget_of(64, 10), 160) << "the error of the baseline kernel is one draw";
  EXPECT_DOUBLE_EQ(budget_of(64, 30), 256);
  EXPECT_DOUBLE_EQ(budget_of(1e6, 0), 256);
}

/// Statistics of results against the right ones, as the judge's compare kernel computes them.
class Results {
 public:
  explicit Results(DType dtype) : rounding_(std::max(4 * UnitRoundoff(dtype), 0x1p-8)) {}
  void Add(double y, double r) {
    const double difference = y - r;
    stats_.squared_difference += difference * difference;
    stats_.fourth_difference += std::pow(difference, 4);
    stats_.squared_reference += r * r;
    stats_.along_reference += difference * r;
    stats_.squared_along += difference * r * difference * r;
    stats_.inexact += std::fabs(difference) > rounding_ * std::fabs(r);
    stats_.lost_digits += std::fabs(difference) > 0.25 * std::fabs(r);
    stats_.elements = ++stats_.finite;
  }
  const CompareStats& stats() const { return stats_; }

 private:
  double rounding_;
  CompareStats stats_;
};

/// A number of float32 cut off, or rounded, to as many digits as bfloat16 has.
double Short(double v, bool cut) {
  int exponent = 0;
  const double digits = std::frexp(v, &exponent) * 256;
  return std::ldexp(cut ? std::trunc(digits) : std::nearbyint(digits), exponent - 8);
}

TEST(JudgeOutput, In16BitsFewErrorsMayBeLargeAndManyMayNot) {
  const double u = UnitRoundoff(DType::kBFloat16);
  const auto kind = [&](double times, double erring) {
    const ErrorBudget budget = BudgetFromBaseline(BaselineStats(0.5 * u, 2 * u), DType::kBFloat16,
                                                  {});
    CompareStats stats = BaselineStats(times * 0.5 * u, 2 * u);
    stats.fourth_difference = stats.squared_difference * stats.squared_difference / erring;
    return JudgeOutput("y", stats, budget, false).kind;
  };
  EXPECT_EQ(kind(2.4, 1000), VerdictKind::kCorrect) << "five roundings more";
  EXPECT_EQ(kind(2.6, 1000), VerdictKind::kLowPrecision);
  EXPECT_EQ(kind(3.9, 100), VerdictKind::kCorrect) << "few elements";
  EXPECT_EQ(kind(5, 100), VerdictKind::kLowPrecision) << "but the norm is bounded all the same";
}

TEST(JudgeOutput, In16BitsWhatIsCutOffIsTooSmallAsAWhole) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (const size_t elements : {40, 300, 3000, 300'000}) {
    for (int seed = 0; seed < (elements < 10'000 ? 300 : 3); ++seed) {
      Results rounded(DType::kBFloat16);
      Results twice(DType::kBFloat16);
      Results cut(DType::kBFloat16);
      for (size_t i = 0; i < elements; ++i) {
        const double r = normal(random);
        rounded.Add(Short(r, false), r);
        twice.Add(Short(1.7 * Short(r / 1.7, false), false), r);
        cut.Add(Short(r, true), r);
      }
      const ErrorBudget budget = BudgetFromBaseline(rounded.stats(), DType::kBFloat16, {});
      EXPECT_EQ(JudgeOutput("y", twice.stats(), budget, false).kind, VerdictKind::kCorrect)
          << elements;
      if (elements > 10'000)
        EXPECT_EQ(JudgeOutput("y", cut.stats(), budget, false).kind, VerdictKind::kLowPrecision)
            << elements;
    }
  }
}

// Among millions of sums some are near zero, and no kernel has a right digit in these. Measured: 14
// of 3.2 million results of a convolution, of which the baseline lost 2.
TEST(JudgeOutput, SumsThatCancelMayLoseTheirDigitsInAnyKernel) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  constexpr int kResults = 20'000;
  for (const double error : {1e-6, 1e-5, 1e-4, 1e-3, 1e-2}) {
    for (int seed = 0; seed < 20; ++seed) {
      Results plain(DType::kFloat16);
      Results other(DType::kFloat16);
      Results without_small(DType::kFloat16);
      for (int i = 0; i < kResults; ++i) {
        const double r = normal(random);
        plain.Add(r + error * normal(random), r);
        other.Add(r + 4 * error * normal(random), r);
        without_small.Add(std::fabs(r) < 0.1 ? 0.0 : r, r);
      }
      ErrorBudget budget = BudgetFromBaseline(plain.stats(), DType::kFloat16, {});
      budget.noise = ErrorBudget::kUnlimited;
      budget.norm = budget.element = budget.bias = 1;
      EXPECT_EQ(JudgeOutput("y", other.stats(), budget, false).kind, VerdictKind::kCorrect)
          << error;
      if (error < 1e-3)
        EXPECT_EQ(JudgeOutput("y", without_small.stats(), budget, false).kind,
                  VerdictKind::kWrongResult)
            << error;
    }
  }
}

TEST(ErrorBudget, OfManyElementsTogetherIsForTheTasksPrecisionAlone) {
  const auto budget_of = [](DType dtype, Accuracy accuracy, double few_sums = 0) {
    return BudgetFromBaseline(BaselineStats(1e-3, 1e-3), dtype, {}, accuracy,
                              {.few_sums = few_sums});
  };
  const double free = ErrorBudget::kUnlimited;
  EXPECT_LT(budget_of(DType::kFloat16, Accuracy::kDefault).noise, 3e-3);
  EXPECT_GE(budget_of(DType::kFloat16, Accuracy::kStrict).noise, 1e-3)
      << "the plain kernel itself passes";
  EXPECT_EQ(budget_of(DType::kFloat16, Accuracy::kFast).noise, free);
  EXPECT_EQ(budget_of(DType::kFloat16, Accuracy::kFast).lost_digits, free);
  EXPECT_EQ(budget_of(DType::kFloat16, Accuracy::kDefault, 100).bias, free)
      << "one rounding is in many elements";
  EXPECT_EQ(budget_of(DType::kFloat32, Accuracy::kDefault).bias, free);
  Tolerance own;
  own.relative = 1e-5;
  EXPECT_EQ(BudgetFromBaseline(BaselineStats(0, 0), DType::kFloat16, own).lost_digits, free);
}

TEST(ErrorBudget, OfFloat64LeavesRoomForTheReferencesOwnOrderOfSummation) {
  const double million = BudgetFromBaseline(BaselineStats(0, 0), DType::kFloat64, {},
                                            Accuracy::kDefault, {.elements = 1e6})
                             .norm;
  EXPECT_DOUBLE_EQ(million, (8 + 16000) * 0x1p-53);
  EXPECT_LT(million, 1e-4 * UnitRoundoff(DType::kFloat32)) << "float32 does not fit in";
  EXPECT_DOUBLE_EQ(BudgetFromBaseline(BaselineStats(0, 0), DType::kFloat32, {}, Accuracy::kDefault,
                                      {.elements = 1e6})
                       .norm,
                   8 * 0x1p-24);
}

TEST(ErrorBudget, LeavesRoomForProductsAddedUpInOrder) {
  const auto budget_of = [](double products, DType dtype) {
    return BudgetFromBaseline(BaselineStats(0, 0), dtype, {}, Accuracy::kDefault,
                              {.products = products});
  };
  // The error of adding up products of random signs one by one in float32.
  constexpr int kProducts = 864;
  constexpr int kResults = 2000;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  double squared = 0;
  std::vector<std::pair<double, double>> results;
  for (int i = 0; i < kResults; ++i) {
    float sum = 0;
    double exact = 0;
    for (int k = 0; k < kProducts; ++k) {
      const float a = normal(random);
      const float b = normal(random);
      sum = std::fma(a, b, sum);
      exact += static_cast<double>(a) * b;
    }
    results.emplace_back(sum, exact);
    squared += exact * exact;
  }
  double error = 0;
  double worst = 0;
  for (const auto& [sum, exact] : results) {
    error += (sum - exact) * (sum - exact);
    worst = std::max(worst,
                     std::abs(sum - exact) / (std::abs(exact) + std::sqrt(squared / kResults)));
  }
  const double norm = std::sqrt(error / squared);
  const ErrorBudget budget = budget_of(kProducts, DType::kFloat32);
  EXPECT_NEAR(norm, budget.norm / 4, 0.1 * norm) << "k = 4 times that";
  EXPECT_LT(worst, budget.element / 4);
  EXPECT_GT(norm, BudgetFromBaseline(BaselineStats(0, 0), DType::kFloat32, {}).norm)
      << "else there is nothing to leave room for";
  EXPECT_LT(budget.norm, ReducedRoundoff(DType::kFloat32) / 100) << "TF32 does not fit in";
  EXPECT_DOUBLE_EQ(budget_of(16, DType::kFloat32).norm, budget_of(0, DType::kFloat32).norm);
  EXPECT_DOUBLE_EQ(budget_of(kProducts, DType::kBFloat16).norm,
                   budget_of(0, DType::kBFloat16).norm);
}

TEST(ErrorBudget, OfTheWorstElementGrowsWithTheirNumber) {
  const auto budget_of = [](uint64_t results) {
    CompareStats baseline = BaselineStats(0, 0);
    baseline.elements = baseline.finite = results;
    return BudgetFromBaseline(baseline, DType::kFloat32, {}, Accuracy::kStrict, {.products = 1024});
  };
  const double u = UnitRoundoff(DType::kFloat32);
  EXPECT_DOUBLE_EQ(budget_of(1000).element, 0.3 * 32 * 5 * u);
  // The largest of so many normal numbers is beyond 5 of their standard deviations.
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  constexpr uint64_t kResults = 20'000'000;
  double largest = 0;
  for (uint64_t i = 0; i < kResults; ++i) largest = std::max(largest, std::abs(normal(random)));
  EXPECT_GT(largest, 5);
  EXPECT_NEAR(budget_of(kResults).element, 0.3 * 32 * largest * u, 0.1 * 0.3 * 32 * largest * u);
  // A product that is missing, or rounded to TF32, stays far outside.
  const double dropped = 1 / std::sqrt(1024.0);
  EXPECT_LT(4 * budget_of(kResults).element, dropped / 1000);
  EXPECT_LT(4 * budget_of(kResults).norm, ReducedRoundoff(DType::kFloat32) / 100);
}

// Five means of 1651 terms, spread over an output: 8.8 u, where the baseline kernel happened to be
// exact.
TEST(ErrorBudget, LeavesRoomForTheErrorOfFewSumsBehindManyElements) {
  const auto budget_of = [](double terms, Accuracy accuracy = Accuracy::kDefault) {
    return BudgetFromBaseline(BaselineStats(0, 0), DType::kFloat32, {}, accuracy,
                              {.few_sums = terms})
               .norm /
           UnitRoundoff(DType::kFloat32);
  };
  EXPECT_DOUBLE_EQ(budget_of(0), 8);
  EXPECT_NEAR(budget_of(1651), 48.8, 0.1);
  EXPECT_DOUBLE_EQ(budget_of(1e9), 256) << "no more than for an output of few numbers";
  EXPECT_DOUBLE_EQ(budget_of(1651, Accuracy::kStrict), 2);
  EXPECT_LT(256, ReducedRoundoff(DType::kFloat32) / UnitRoundoff(DType::kFloat32) / 4)
      << "TF32 does not fit in";
}

TEST(ErrorBudget, AllowsTheNansThatTheBaselineLoses) {
  CompareStats stats = BaselineStats(0, 0);
  stats.lost_nan = 2;
  ErrorBudget budget = BudgetFromBaseline(stats, DType::kFloat32, {});
  EXPECT_EQ(JudgeOutput("y", stats, budget, false).kind, VerdictKind::kCorrect);
  stats.lost_nan = 3;
  EXPECT_EQ(JudgeOutput("y", stats, budget, false).kind, VerdictKind::kNonFinite);
}

TEST(ErrorBudget, ATasksOwnToleranceReplacesIt) {
  Tolerance own;
  own.relative = 1e-5;
  const ErrorBudget derived = BudgetFromBaseline(BaselineStats(1e-3, 5e-3), DType::kFloat32, own);
  EXPECT_DOUBLE_EQ(derived.norm, 1e-5) << "also where it is the stricter one";
  EXPECT_DOUBLE_EQ(derived.element, 1e-5);
  EXPECT_DOUBLE_EQ(DefaultBudget(DType::kBFloat16, own, 1).norm, 1e-5);
}

TEST(ErrorBudget, AnAbsoluteToleranceIsBesideTheRelativeOne) {
  Tolerance own;
  own.relative = 1e-3;
  own.absolute = 1e-5;
  EXPECT_DOUBLE_EQ(ElementScale({}, 7), 7);
  // |y - r| / (|r| + scale) <= element is |y - r| <= 1e-5 + 1e-3 |r|.
  EXPECT_DOUBLE_EQ(ElementScale(own, 7) * DefaultBudget(DType::kFloat32, own, 7).element, 1e-5);
  EXPECT_DOUBLE_EQ(DefaultBudget(DType::kFloat32, own, 7).element, 1e-3);
  EXPECT_DOUBLE_EQ(DefaultBudget(DType::kFloat32, own, 2).norm, 1e-3 + 1e-5 / 2);
  own.relative.reset();
  EXPECT_DOUBLE_EQ(ElementScale(own, 7) * DefaultBudget(DType::kFloat32, own, 7).element, 1e-5)
      << "alone";
}

TEST(ErrorBudget, IntegersMustBeEqual) {
  Tolerance loose;
  loose.relative = 0.5;
  for (DType dtype : {DType::kInt8, DType::kInt32, DType::kUInt64, DType::kBool}) {
    EXPECT_EQ(BudgetFromBaseline(BaselineStats(0.1, 0.1), dtype, loose).norm, 0);
    EXPECT_EQ(DefaultBudget(dtype, loose, 1).element, 0);
  }
}

TEST(ErrorBudget, WithoutABaselineThereIsRoomForAnotherOrderButNotForLowerPrecision) {
  const double order = std::sqrt(65536.0) * UnitRoundoff(DType::kFloat32);
  const double tf32 = 0x1p-11;
  EXPECT_GE(DefaultBudget(DType::kFloat32, {}, 1).norm, order);
  EXPECT_LT(DefaultBudget(DType::kFloat32, {}, 1).norm, tf32 / 4);
  EXPECT_LT(DefaultBudget(DType::kFloat16, {}, 1).norm, UnitRoundoff(DType::kBFloat16))
      << "bfloat16 is not float16";
}

TEST(JudgeOutput, TheBoundItselfPassesAndAnythingMoreFails) {
  const ErrorBudget budget{.norm = 1e-6, .element = 1e-5};
  EXPECT_EQ(JudgeOutput("y", BaselineStats(0.999e-6, 1e-5), budget, false).kind,
            VerdictKind::kCorrect);
  EXPECT_NE(JudgeOutput("y", BaselineStats(1.001e-6, 0), budget, false).kind,
            VerdictKind::kCorrect);
  EXPECT_NE(JudgeOutput("y", BaselineStats(0, std::nextafter(1e-5, 1)), budget, false).kind,
            VerdictKind::kCorrect);
}

TEST(JudgeOutput, ANanErrorNeverPasses) {
  const ErrorBudget budget{.norm = 1, .element = 1};
  CompareStats stats = BaselineStats(0, 0);
  stats.worst = NAN;
  EXPECT_NE(JudgeOutput("y", stats, budget, false).kind, VerdictKind::kCorrect);
  stats = BaselineStats(0, 0);
  stats.squared_difference = NAN;
  EXPECT_EQ(stats.RelativeNorm(), 1e300) << "kept and sent as a number";
  EXPECT_NE(JudgeOutput("y", stats, budget, false).kind, VerdictKind::kCorrect);
}

TEST(JudgeOutput, NamesWhatIsWrong) {
  const ErrorBudget budget{.norm = 1e-6, .element = 1e-5};
  CompareStats stats = BaselineStats(0, 0);
  stats.unwritten = 3;
  stats.first_bad = 17;
  const OutputJudgement unwritten = JudgeOutput("y", stats, budget, false);
  EXPECT_EQ(unwritten.kind, VerdictKind::kNotWritten);
  EXPECT_THAT(unwritten.reason, HasSubstr("3 of 1000 elements of 'y'"));
  EXPECT_THAT(unwritten.reason, HasSubstr("element 17"));
  EXPECT_EQ(JudgeOutput("y", stats, budget, true).kind, VerdictKind::kCorrect)
      << "other blocks did not run";
  stats.finite = 0;
  EXPECT_EQ(JudgeOutput("y", stats, budget, true).kind, VerdictKind::kNotWritten) << "but some did";

  stats = BaselineStats(0, 0);
  stats.lost_nan = 1;
  EXPECT_EQ(JudgeOutput("y", stats, budget, false).kind, VerdictKind::kNonFinite);
  stats = BaselineStats(0, 0);
  stats.new_nonfinite = 1;
  EXPECT_EQ(JudgeOutput("y", stats, budget, false).kind, VerdictKind::kNonFinite);
}

TEST(JudgeOutput, TellsLowPrecisionFromAWrongAnswer) {
  const ErrorBudget budget{.norm = 1e-6, .element = 1e-5};
  CompareStats everywhere_a_little = BaselineStats(1e-3, 4e-3);
  everywhere_a_little.beyond = 900;
  EXPECT_EQ(JudgeOutput("y", everywhere_a_little, budget, false).kind, VerdictKind::kLowPrecision);
  CompareStats one_element = BaselineStats(1e-2, 0.4);
  one_element.beyond = 1;
  EXPECT_EQ(JudgeOutput("y", one_element, budget, false).kind, VerdictKind::kWrongResult);
  CompareStats everywhere_a_lot = BaselineStats(0.7, 2);
  everywhere_a_lot.beyond = 1000;
  EXPECT_EQ(JudgeOutput("y", everywhere_a_lot, budget, false).kind, VerdictKind::kWrongResult);
}

TEST(CompareStats, WhatOverflowsIsStillANumber) {
  const CompareStats overflown = BaselineStats(INFINITY, 1e300);
  EXPECT_EQ(overflown.RelativeNorm(), 1e300);
  const ErrorBudget budget = BudgetFromBaseline(overflown, DType::kFloat64, {});
  EXPECT_TRUE(std::isfinite(budget.norm));
  EXPECT_TRUE(std::isfinite(budget.element));
  EXPECT_NE(JudgeOutput("y", overflown, budget, false).kind, VerdictKind::kCorrect);
}

TEST(CompareStats, AZeroReferenceIsMatchedByZerosOnlyOrMeasuredByAScale) {
  CompareStats stats;
  EXPECT_EQ(stats.RelativeNorm(), 0);
  stats.squared_difference = 4e-14;
  stats.finite = 100;
  EXPECT_GT(stats.RelativeNorm(), 1e200);
  stats.scale = 1e-8;
  EXPECT_DOUBLE_EQ(stats.RelativeNorm(), 2) << "rms of 2e-8";
}

}  // namespace
}  // namespace atunner
