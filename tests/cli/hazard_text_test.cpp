// The messages of `run` and `sanitize` about a launch.
#include "faces/cli/output/hazard_text.h"

#include <gtest/gtest.h>

namespace atunner::cli {
namespace {

TEST(HazardSummary, SaysNothingOfHazardsThatNobodyLookedFor) {
  LaunchOutcome outcome;
  outcome.blocks_executed = 2;
  EXPECT_EQ(HazardSummary(outcome, true), "no hazards on 2 blocks");
  EXPECT_EQ(HazardSummary(outcome, false), "completed, nothing was checked");
}

TEST(HazardSummary, NamesTheErrorOfAKernelThatDied) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kFaulted;
  outcome.message = "CUDA_ERROR_ILLEGAL_ADDRESS";
  EXPECT_EQ(HazardSummary(outcome, false), "CUDA_ERROR_ILLEGAL_ADDRESS");
  outcome.hazards.emplace_back();
  outcome.blocks_executed = 7;
  EXPECT_EQ(HazardSummary(outcome, true), "1 hazard on 7 blocks");
}

TEST(HazardSummary, NamesTheLimitThatEndedALaunch) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kTimeout;
  outcome.message = "the limit of time ran out";
  outcome.blocks_executed = 3;
  EXPECT_EQ(HazardSummary(outcome, true), "the limit of time ran out on 3 blocks");
}

}  // namespace
}  // namespace atunner::cli
