#include "atunner/tune/part_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

/// One parameter, t, whose values are times in us.
class Part : public ScheduleTemplate {
 public:
  explicit Part(const char* name) {
    spec_.name = name;
    space_.parameters = {{"t", {int64_t{1}, int64_t{2}, int64_t{3}}, ""}};
  }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Result<RenderedKernel> Render(const Configuration&) const override { return RenderedKernel{}; }
  Configuration Default() const override { return {{int64_t{1}}}; }

 private:
  KernelSpec spec_;
  ParameterSpace space_;
};

/// Writes what it is given.
class Whole : public Part, public PartitionedSchedule {
 public:
  Whole() : Part("whole"), first_("first"), second_("second") {}
  std::vector<const ScheduleTemplate*> Parts() const override { return {&first_, &second_}; }
  std::vector<PartStage> Stages() const override { return {{0, {}}, {1, {}}}; }
  bool SharesSizes(size_t) const override { return true; }
  Result<RenderedKernel> RenderParts(
      const std::vector<Configuration>& configurations) const override {
    RenderedKernel kernel;
    for (const Configuration& one : configurations)
      kernel.source.text += ToString(one.values[0]) + ";";
    return kernel;
  }

 private:
  Part first_, second_;
};

Configuration Of(int64_t t) { return {{t}}; }

Trial TrialOf(int64_t t, double ns) {
  Trial trial;
  trial.candidate.what = Of(t);
  trial.measurement = Measurement{.median_ns = ns};
  return trial;
}

TEST(PartChoices, AreParametersOfTheWhole) {
  const Whole whole;
  const PartChoices choices(whole, whole, {{Of(3), Of(1)}, {Of(2)}});
  ASSERT_TRUE(choices.space().Validate({}).has_value());
  EXPECT_THAT(choices.space().Names(), testing::ElementsAre("part1", "part2"));
  EXPECT_EQ(choices.space().CartesianSize(), 2);
  EXPECT_EQ(choices.Render(choices.Default())->source.text, "3;2;");
  Configuration other = choices.Default();
  other.values[0] = choices.space().parameters[0].values[1];
  EXPECT_EQ(choices.Render(other)->source.text, "1;2;");
}

TEST(PartChoices, ShareTheBudgetByWhatPartsTake) {
  const PartBudgets budgets = DivideBudget({.trials = 100, .seconds = 40}, {36000, 10, 64000});
  ASSERT_EQ(budgets.parts.size(), 3u);
  EXPECT_EQ(*budgets.parts[0].trials, 31);
  EXPECT_EQ(*budgets.parts[1].trials, 10) << "a launch takes time, whatever it moves";
  EXPECT_EQ(*budgets.parts[2].trials, 42);
  EXPECT_EQ(*budgets.whole.trials, 15);
  EXPECT_DOUBLE_EQ(*budgets.whole.seconds, 6);
  const PartBudgets few = DivideBudget({.trials = 1}, {1, 1});
  EXPECT_EQ(*few.parts[1].trials, 2);
  EXPECT_EQ(*few.whole.trials, 1);
  EXPECT_FALSE(few.whole.seconds);
}

TEST(PartChoices, TakeWhoWonAndWhoWasClose) {
  TuneResult result;
  EXPECT_TRUE(BestOf(result).empty());
  result.trials = {TrialOf(1, 102), TrialOf(2, 140), TrialOf(3, 100)};
  result.best = result.trials[2];
  EXPECT_THAT(BestOf(result), testing::ElementsAre(Of(3), Of(1)));
  result.trials[0] = TrialOf(1, 110);
  EXPECT_THAT(BestOf(result), testing::ElementsAre(Of(3)));
}

}  // namespace
}  // namespace atunner
