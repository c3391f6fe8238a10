#include "atunner/replay/ppo_training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace atunner {
namespace {

RecordedSpace Valley() {
  ParameterSpace space;
  for (const char* name : {"x", "y", "z"}) {
    Parameter parameter{name, {}, ""};
    for (int64_t v = 0; v < 9; ++v) parameter.values.emplace_back(v);
    space.parameters.push_back(parameter);
  }
  RecordedSpace recorded;
  recorded.name = "valley";
  recorded.index = std::make_shared<const SpaceIndex>(SpaceIndex::Build(space, {}).value());
  for (uint64_t at = 0; at < recorded.index->size(); ++at) {
    const auto p = recorded.index->PositionsAt(at);
    recorded.time_ms.emplace_back(10 + std::pow(p[0] - 6.0, 2) + std::pow(p[1] - 2.0, 2) +
                                  std::pow(p[2] - 5.0, 2));
    recorded.spent_ms.push_back(1);
  }
  return recorded;
}

TEST(TrainPolicy, GetsBetter) {
  const RecordedSpace valley = Valley();
  const RecordedSpace* spaces[] = {&valley};
  TrainingOptions options;
  options.iterations = 30;
  options.episodes = 8;
  options.steps = 40;
  std::vector<double> returns;
  const auto policy = TrainPolicy(spaces, options, [&](int iteration, double mean_return) {
    EXPECT_EQ(iteration, static_cast<int>(returns.size()));
    returns.push_back(mean_return);
  });
  ASSERT_TRUE(policy.has_value());
  ASSERT_EQ(returns.size(), 30u);
  double before = 0;
  double after = 0;
  for (size_t i = 0; i < 5; ++i) {
    before += returns[i] / 5;
    after += returns[returns.size() - 1 - i] / 5;
  }
  EXPECT_GT(after, before + 0.02) << "the untrained policy draws among its candidates";
}

TEST(TrainPolicy, EqualSeedsGiveEqualPolicies) {
  const RecordedSpace valley = Valley();
  const RecordedSpace* spaces[] = {&valley};
  const TrainingOptions options{.iterations = 2, .episodes = 2, .steps = 20};
  const auto train = [&] {
    return TrainPolicy(spaces, options, [](int, double) {}).value().actor.parameters();
  };
  EXPECT_EQ(train(), train());
}

TEST(TrainPolicy, WantsASpaceWithTimes) {
  EXPECT_FALSE(TrainPolicy({}, {}, [](int, double) {}).has_value());
  RecordedSpace empty = Valley();
  for (auto& time : empty.time_ms) time.reset();
  const RecordedSpace* spaces[] = {&empty};
  EXPECT_FALSE(TrainPolicy(spaces, {}, [](int, double) {}).has_value());
}

}  // namespace
}  // namespace atunner
