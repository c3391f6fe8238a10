#include "atunner/tune/objectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Trial MakeTrial(double ns, int64_t bytes) {
  Trial trial;
  trial.measurement.emplace();
  trial.measurement->median_ns = ns;
  trial.memory_bytes = bytes;
  return trial;
}

TEST(Objectives, AreNamed) {
  EXPECT_THAT(*ParseObjectives("memory,time"), ElementsAre(Objective::kMemory, Objective::kTime));
  EXPECT_THAT(ParseObjectives("speed").error().ToString(),
              HasSubstr("use time, memory and energy"));
  EXPECT_THAT(ParseObjectives("time,time").error().ToString(), HasSubstr("twice"));
  EXPECT_FALSE(ParseObjectives("").has_value());
  EXPECT_FALSE(ParseObjectives("time,").has_value());
}

TEST(Objectives, AFailureHasNoValues) {
  const std::vector<Objective> all = {Objective::kTime, Objective::kMemory};
  EXPECT_THAT(ValuesOf(MakeTrial(5, 0), all), ElementsAre(5, 1));
  Trial wrong = MakeTrial(5, 64);
  wrong.verdict.kind = VerdictKind::kWrongResult;
  wrong.measurement.reset();
  EXPECT_FALSE(ValueOf(wrong, Objective::kMemory));
  EXPECT_TRUE(ValuesOf(wrong, all).empty());
}

TEST(Objectives, EnergyIsWhatWasMeasuredOrPredicted) {
  Trial trial = MakeTrial(5, 0);
  EXPECT_FALSE(ValueOf(trial, Objective::kEnergy)) << "not asked for";
  trial.measurement->energy_joules = 0.25;
  EXPECT_EQ(ValueOf(trial, Objective::kEnergy), 0.25);
  trial.measurement.reset();
  trial.estimate = Estimate{.time_ns = 5, .energy_joules = 0.5};
  EXPECT_THAT(ValuesOf(trial, {Objective::kEnergy, Objective::kTime}), ElementsAre(0.5, 5));
  trial.verdict.kind = VerdictKind::kWrongResult;
  EXPECT_FALSE(ValueOf(trial, Objective::kEnergy));
}

TEST(Objectives, TheFrontLeavesOutWhatIsBeatenAndCopies) {
  std::vector<Trial> trials = {MakeTrial(9, 10), MakeTrial(5, 100), MakeTrial(6, 120),
                               MakeTrial(7, 50), MakeTrial(5, 100)};
  trials[4].same_as = 2;
  EXPECT_THAT(FrontOf(trials, {Objective::kTime, Objective::kMemory}), ElementsAre(1, 3, 0));
}

TEST(Objectives, MemoryIsWorkspacesAndTheLargestBlock) {
  KernelSpec spec;
  spec.dims = {{"n", 100}};
  CandidateKernel candidate;
  candidate.plan.workspaces = {{"w", Expr::MustParse("4 * n")}};
  candidate.plan.steps.resize(2);
  candidate.plan.steps[0].entry = "a";
  candidate.plan.steps[0].shared_bytes = Expr(1024);
  candidate.plan.steps[1].entry = "b";
  KernelResources small;
  small.entry = "a";
  KernelResources large;
  large.entry = "b";
  large.static_shared_bytes = 2048;
  candidate.module.kernels = {small, large};
  EXPECT_EQ(MemoryOf(candidate, spec), 400 + 2048);
  candidate.plan.steps[0].grid[0] = Expr::MustParse("nobody");
  EXPECT_EQ(MemoryOf(candidate, spec), 0);
}

}  // namespace
}  // namespace atunner
