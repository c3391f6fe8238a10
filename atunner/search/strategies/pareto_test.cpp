#include "atunner/search/strategies/pareto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace atunner {
namespace {

using testing::ElementsAre;

TEST(Pareto, KeepsWhatNothingBeats) {
  const std::vector<std::vector<double>> points = {{3, 1}, {1, 3}, {2, 2}, {3, 3}, {2, 2}, {1, 4}};
  EXPECT_THAT(ParetoFront(points), ElementsAre(1, 2, 0));
  EXPECT_TRUE(ParetoFront({}).empty());
}

/// More threads are faster and take more memory, beyond that both hang on an interaction.
std::shared_ptr<const SpaceIndex> Space() {
  ParameterSpace space;
  for (const char* name : {"x", "y", "z"}) {
    Parameter parameter{name, {}, ""};
    for (int64_t v = 1; v <= 16; ++v) parameter.values.emplace_back(v);
    space.parameters.push_back(parameter);
  }
  return std::make_shared<const SpaceIndex>(SpaceIndex::Build(space, {}).value());
}

std::vector<double> Values(const Configuration& one) {
  const double x = ToDouble(one.values[0]);
  const double y = ToDouble(one.values[1]);
  const double z = ToDouble(one.values[2]);
  const double waste = 1 + 0.1 * std::pow(y - 9, 2) + 0.1 * std::pow(z - x / 2, 2);
  return {1000 / x * waste, x * x * waste};
}

/// Area between the front and the corner, in logarithms.
double Hypervolume(const std::vector<std::vector<double>>& points) {
  double area = 0;
  double from = std::log(1e4);
  const std::vector<size_t> front = ParetoFront(points);
  for (size_t i = front.size(); i-- > 0;) {
    const auto& point = points[front[i]];
    area += (from - std::log(point[0])) * std::max(0.0, std::log(1e4) - std::log(point[1]));
    from = std::log(point[0]);
  }
  return area;
}

double VolumeAfter(const std::string& strategy, uint64_t seed, int budget) {
  SearchOptions options{.seed = seed};
  options.objectives = 2;
  auto searcher = MakeSearcher(strategy, Space(), options).value();
  std::vector<std::vector<double>> points;
  std::set<std::string> seen;
  for (int i = 0; i < budget; ++i) {
    const auto asked = searcher->Ask(1);
    EXPECT_TRUE(seen.insert(Space()->space().Describe(asked.at(0))).second)
        << "nothing is asked twice";
    const std::vector<double> values = Values(asked[0]);
    points.push_back(values);
    searcher->Tell({asked[0], values[0], 0, {values[1]}});
  }
  return Hypervolume(points);
}

TEST(Pareto, TheDefaultFindsAWiderFrontThanRandom) {
  double guided = 0;
  double random = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    guided += VolumeAfter("auto", seed, 60);
    random += VolumeAfter("random", seed, 60);
  }
  EXPECT_GT(guided, 1.05 * random);
}

TEST(Pareto, AsksUntilTheSpaceIsExhaustedWhateverItIsTold) {
  SearchOptions options{.seed = 1};
  options.objectives = 3;
  ParameterSpace space;
  space.parameters = {{"x", {}, ""}};
  for (int64_t v = 0; v < 25; ++v) space.parameters[0].values.emplace_back(v);
  const auto index = std::make_shared<const SpaceIndex>(SpaceIndex::Build(space, {}).value());
  auto searcher = MakeSearcher("auto", index, options).value();
  std::set<int64_t> seen;
  for (const Configuration& one : searcher->Ask(10)) {
    seen.insert(std::get<int64_t>(one.values[0]));
    searcher->Tell({one, 5.0, 0, {1.0}});  // one objective is missing: it counts as failed
  }
  for (const Configuration& one : searcher->Ask(100)) seen.insert(std::get<int64_t>(one.values[0]));
  EXPECT_EQ(seen.size(), 25u);
}

}  // namespace
}  // namespace atunner
