#include "atunner/jobs/captures/shared_budget.h"

#include <gtest/gtest.h>

namespace atunner::jobs {
namespace {

std::vector<KernelShare> Shares() {
  std::vector<KernelShare> shares(4);
  shares[0].share = 0.375;
  shares[1].share = 0.25;
  shares[1].obstacle = "it reads textures";
  shares[2].share = 0.09375;
  shares[3].share = 0.03125;
  return shares;
}

TEST(SharedBudget, IsDividedByTheTimeOfWhatCanBeTuned) {
  ManualClock clock;
  const auto shares = Shares();
  SharedBudget budget({.trials = 160, .seconds = 100}, shares, clock, -20);
  const KernelBudget first = budget.Take(shares[0]).value();
  EXPECT_EQ(first.search.trials, 120);
  EXPECT_DOUBLE_EQ(first.seconds.value(), 60) << "three quarters of what was left of 100";
  EXPECT_DOUBLE_EQ(first.search.seconds.value(), 24);
  clock.Advance(70);
  const KernelBudget second = budget.Take(shares[2]).value();
  EXPECT_EQ(second.search.trials, 30);
  EXPECT_DOUBLE_EQ(second.seconds.value(), 8) << "7.5 are too few";
  clock.Advance(4);
  EXPECT_FALSE(budget.Take(shares[3])) << "6 s are left";
}

TEST(SharedBudget, TheFirstKernelIsTunedInAnyCase) {
  ManualClock clock;
  const auto shares = Shares();
  SharedBudget budget({.trials = {}, .seconds = 1}, shares, clock, 0);
  clock.Advance(50);
  const KernelBudget first = budget.Take(shares[0]).value();
  EXPECT_FALSE(first.search.trials);
  EXPECT_DOUBLE_EQ(first.seconds.value(), 8);
  EXPECT_FALSE(budget.Take(shares[2]));
}

TEST(SharedBudget, WithoutSecondsEveryKernelHasItsTrials) {
  ManualClock clock;
  const auto shares = Shares();
  SharedBudget budget({.trials = 60, .seconds = {}}, shares, clock, 0);
  clock.Advance(1e6);
  for (const size_t i : {0, 2, 3}) {
    const KernelBudget taken = budget.Take(shares[i]).value();
    EXPECT_GE(taken.search.trials.value(), 10);
    EXPECT_FALSE(taken.search.seconds);
    EXPECT_FALSE(taken.seconds);
  }
}

}  // namespace
}  // namespace atunner::jobs
