#include "atunner/search/strategies/ppo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

TEST(Mlp, GradientsAreThoseOfDifferences) {
  constexpr size_t kInputs = 3;
  constexpr size_t kHidden = 4;
  std::vector<float> parameters(Mlp::ParameterCount(kInputs, kHidden));
  Random random(5);
  for (float& p : parameters) p = static_cast<float>(random.Normal());
  const Mlp network(kInputs, kHidden, parameters);
  const std::vector<float> x = {0.3f, -1.2f, 0.8f};
  std::vector<double> gradient(parameters.size());
  network.Backward(x, 2.0, gradient);
  for (size_t i = 0; i < parameters.size(); ++i) {
    constexpr float kStep = 1e-2f;
    Mlp above = network;
    Mlp below = network;
    above.parameters()[i] += kStep;
    below.parameters()[i] -= kStep;
    EXPECT_NEAR(gradient[i], 2.0 * (above(x) - below(x)) / (2.0 * static_cast<double>(kStep)), 2e-3)
        << i;
  }
}

std::shared_ptr<const SpaceIndex> Grid() {
  ParameterSpace space;
  for (const char* name : {"x", "y"}) {
    Parameter parameter{name, {}, ""};
    for (int64_t v = 0; v < 20; ++v) parameter.values.emplace_back(v);
    space.parameters.push_back(parameter);
  }
  return std::make_shared<const SpaceIndex>(SpaceIndex::Build(space, {}).value());
}

double TimeOf(const Configuration& one) {
  const double x = ToDouble(one.values[0]);
  const double y = ToDouble(one.values[1]);
  return 50 + (x - 13) * (x - 13) + 2 * (y - 4) * (y - 4);
}

TEST(Ppo, TheBuiltInPolicyIsAWholeOne) {
  const auto& weights = Policy::BuiltIn().actor.parameters();
  EXPECT_EQ(weights.size(), Mlp::ParameterCount(kPolicyFeatures, kPolicyHidden));
  EXPECT_GT(std::ranges::count_if(weights, [](float w) { return w != 0; }), 200);
}

TEST(Ppo, ADecisionIsOneOfItsCandidatesAndIsWrittenDown) {
  std::vector<PolicyStep> trace;
  const auto search = MakePolicySearch("ppo", Grid(), {.seed = 3}, Policy::BuiltIn(), &trace);
  for (int i = 0; i < 30; ++i) {
    const auto asked = search->Ask(1);
    search->Tell({asked.at(0), TimeOf(asked[0])});
  }
  EXPECT_EQ(trace.size(), 27u) << "three draws come first";
  for (const PolicyStep& step : trace) {
    ASSERT_LT(step.chosen, step.candidates.size());
    for (const PolicyFeatures& features : step.candidates) {
      for (float f : features) EXPECT_TRUE(std::isfinite(f));
    }
  }
}

TEST(Ppo, FindsTheValley) {
  double left = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto search = MakePpo("ppo", Grid(), {.seed = seed});
    double best = INFINITY;
    for (int i = 0; i < 40; ++i) {
      const auto asked = search->Ask(1);
      search->Tell({asked.at(0), TimeOf(asked[0])});
      best = std::min(best, TimeOf(asked[0]));
    }
    left += (best - 50) / 10;
  }
  EXPECT_LT(left, 2) << "forty random draws leave about 5";
}

}  // namespace
}  // namespace atunner
