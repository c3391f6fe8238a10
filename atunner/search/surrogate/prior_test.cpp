#include "atunner/search/surrogate/prior.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "atunner/search/strategies/finalists.h"
#include "atunner/search/strategies/strategy.h"
#include "atunner/search/surrogate/trend.h"

namespace atunner {
namespace {

Parameter Powers(const std::string& name, int64_t first, int64_t last) {
  Parameter parameter{name, {}, ""};
  for (int64_t v = first; v <= last; v *= 2) parameter.values.emplace_back(v);
  return parameter;
}

std::shared_ptr<const SpaceIndex> Present() {
  ParameterSpace space;
  for (const char* name : {"x", "y", "z", "w"}) space.parameters.push_back(Powers(name, 1, 128));
  space.parameters.push_back({"mode", {std::string("a"), std::string("b")}, ""});
  return std::make_shared<const SpaceIndex>(SpaceIndex::Build(space, {}).value());
}

/// A narrow valley; `shift` moves it a little, as another GPU does.
double TimeOf(const ParameterSpace& space, const Configuration& one, double shift) {
  const auto log = [&](const char* name) { return std::log2(ToDouble(Get(space, one, name))); };
  const double off = std::pow(log("x") - 5 - shift, 2) + std::pow(log("y") - 2, 2) +
                     std::pow(log("z") - 6 + shift, 2) + std::fabs(log("w") - log("y")) +
                     (ToString(Get(space, one, "mode")) == "b" ? 0 : 3);
  return 100 * std::exp(0.1 * off);
}

/// A space with the same parameters in another order and with other values.
PastRun Past(double sign = 1) {
  PastRun run;
  run.space.parameters = {{"mode", {std::string("b"), std::string("a")}, ""},
                          Powers("w", 1, 128),
                          Powers("z", 2, 256),
                          Powers("y", 1, 64),
                          Powers("x", 1, 128)};
  const SpaceIndex index = SpaceIndex::Build(run.space, {}).value();
  Random random(4);
  for (int i = 0; i < 300; ++i) {
    const Configuration one = index.At(index.Draw(random));
    const double log_time = std::log(TimeOf(run.space, one, 0.5));
    run.trials.push_back({one, 3e6 * std::exp(sign * log_time)});
  }
  return run;
}

std::shared_ptr<const Prior> MakePrior(double sign = 1) {
  const std::vector<PastRun> runs = {Past(sign)};
  return Prior::Make(Present(), runs, 1);
}

double BestAfter(const std::string& strategy, std::shared_ptr<const Prior> prior, uint64_t seed,
                 int budget) {
  SearchOptions options{.seed = seed};
  options.prior = std::move(prior);
  const auto index = Present();
  auto searcher = MakeSearcher(strategy, index, options).value();
  double best = INFINITY;
  for (int i = 0; i < budget; ++i) {
    const auto asked = searcher->Ask(1);
    const double time = TimeOf(index->space(), asked.at(0), 0);
    searcher->Tell({asked[0], time});
    best = std::min(best, time);
  }
  return best;
}

double MedianAfter(const std::string& strategy, const std::shared_ptr<const Prior>& prior,
                   int budget) {
  std::vector<double> found;
  for (uint64_t seed = 1; seed <= 9; ++seed)
    found.push_back(BestAfter(strategy, prior, seed, budget));
  std::ranges::sort(found);
  return found[4];
}

TEST(Prior, ExpectsWhatTheRunFoundInTheOrderOfThePresentSpace) {
  const auto prior = MakePrior();
  ASSERT_NE(prior, nullptr);
  const auto index = Present();
  double worst = 0;
  for (uint64_t leader : prior->leaders()) {
    ASSERT_LT(leader, index->size());
    worst = std::max(worst, TimeOf(index->space(), index->At(leader), 0));
  }
  EXPECT_GE(prior->leaders().size(), 3u);
  EXPECT_LT(worst, 400);
  const uint64_t good = index->IndexOf(
      {{int64_t{32}, int64_t{4}, int64_t{64}, int64_t{4}, std::string("b")}});
  const uint64_t bad = index->IndexOf(
      {{int64_t{1}, int64_t{128}, int64_t{1}, int64_t{1}, std::string("a")}});
  EXPECT_LT(prior->Of(good) + 0.5, prior->Of(bad));
}

TEST(Prior, IsOfTheSameParametersOrThereIsNone) {
  PastRun run = Past();
  run.space.parameters[1].name = "other";
  EXPECT_EQ(Prior::Make(Present(), std::vector{run}, 1), nullptr);
  run = Past();
  run.trials.resize(5);
  EXPECT_EQ(Prior::Make(Present(), std::vector{run}, 1), nullptr) << "too few";
  run = Past();
  run.space.parameters[0].values[1] = std::string("unheard of");
  EXPECT_EQ(Prior::Make(Present(), std::vector{run}, 1), nullptr);
  for (Observation& trial : run.trials) trial.objective_ns.reset();
  EXPECT_EQ(Prior::Make(Present(), std::vector{run}, 1), nullptr) << "nothing worked";
  EXPECT_EQ(Prior::Make(Present(), {}, 1), nullptr);
}

TEST(Prior, ShortensTheSearch) {
  const auto prior = MakePrior();
  for (const char* strategy : {"auto", "bayes", "forest"})
    EXPECT_LT(MedianAfter(strategy, prior, 8), 0.9 * MedianAfter(strategy, nullptr, 8)) << strategy;
}

TEST(Prior, ThatMisleadsDoesLittleHarm) {
  const auto reversed = MakePrior(-1);
  ASSERT_NE(reversed, nullptr);
  for (const char* strategy : {"auto", "bayes"})
    EXPECT_LT(MedianAfter(strategy, reversed, 45), 1.1 * MedianAfter(strategy, nullptr, 45))
        << strategy;
}

TEST(Prior, IsNothingToStrategiesThatLookAtNoResult) {
  const auto prior = MakePrior();
  for (const char* strategy : {"random", "exhaustive", "latin"})
    EXPECT_EQ(BestAfter(strategy, prior, 3, 20), BestAfter(strategy, nullptr, 3, 20)) << strategy;
}

/// Told apart by nothing but x, y and z, and off by a factor.
std::optional<double> RoughCost(const SpaceIndex& index, const Configuration& one, double sign) {
  Configuration usual = one;
  usual.values[3] = usual.values[1];
  usual.values[4] = std::string("b");
  return std::exp(sign * 1.3 * std::log(TimeOf(index.space(), usual, 0.3)));
}

double MedianWithCost(const std::string& strategy, double sign, int budget) {
  const auto index = Present();
  std::vector<double> found;
  for (uint64_t seed = 1; seed <= 9; ++seed) {
    SearchOptions options{.seed = seed};
    options.cost = [&](const Configuration& one) { return RoughCost(*index, one, sign); };
    auto searcher = MakeSearcher(strategy, index, options).value();
    double best = INFINITY;
    for (int i = 0; i < budget; ++i) {
      const auto asked = searcher->Ask(1);
      const double time = TimeOf(index->space(), asked.at(0), 0);
      searcher->Tell({asked[0], time});
      best = std::min(best, time);
    }
    found.push_back(best);
  }
  std::ranges::sort(found);
  return found[4];
}

TEST(Cost, LeadsToDifferentConfigurationsThatItTellsApart) {
  const auto index = Present();
  SearchOptions options{.seed = 1};
  EXPECT_EQ(Prior::WithCost(nullptr, index, options), nullptr);
  options.cost = [&](const Configuration& one) { return RoughCost(*index, one, 1); };
  options.first = Configuration{{int64_t{1}, int64_t{1}, int64_t{1}, int64_t{8}, std::string("b")}};
  const auto prior = Prior::WithCost(nullptr, index, options);
  ASSERT_GE(prior->leaders().size(), 4u);
  EXPECT_EQ(prior->leaders()[0], index->IndexOf(*options.first));
  double last = 0;
  for (size_t i = 1; i < prior->leaders().size(); ++i) {
    const Configuration one = index->At(prior->leaders()[i]);
    const double cost = *options.cost(one);
    EXPECT_GT(cost, last * 1.0001) << "alike: " << index->space().Describe(one);
    EXPECT_EQ(one.values[3], Value(int64_t{8})) << "what the cost does not know is as in the first";
    last = cost;
  }
  EXPECT_LT(prior->Of(prior->leaders()[1]) + 1, prior->Of(prior->leaders()[0]));
  const auto both = Prior::WithCost(MakePrior(), index, options);
  EXPECT_GT(both->leaders().size(), prior->leaders().size());
  EXPECT_EQ(both->leaders()[0], prior->leaders()[0]);
}

TEST(Cost, ShortensTheSearchAndDoesLittleHarmWhereItMisleads) {
  for (const char* strategy : {"auto", "bayes", "forest"}) {
    EXPECT_LT(MedianWithCost(strategy, 1, 8), 0.9 * MedianAfter(strategy, nullptr, 8)) << strategy;
    EXPECT_LT(MedianWithCost(strategy, -1, 45), 1.15 * MedianAfter(strategy, nullptr, 45))
        << strategy;
  }
}

TEST(Trend, BelievesWhatHoldsAndDropsWhatDoesNot) {
  const auto prior = MakePrior();
  Trend with(prior);
  Trend against(prior);
  Trend none(nullptr);
  std::vector<Trend::Point> points;
  Random random(6);
  for (int i = 0; i < 30; ++i) {
    const uint64_t at = Present()->Draw(random);
    points.push_back({at, prior->Of(at) + 0.05 * random.Normal()});
  }
  with.Fit(points);
  none.Fit(points);
  EXPECT_GT(with.slope(), 0.8);
  EXPECT_LT(with.spread(), 0.7);
  EXPECT_NEAR(with.Value(points[0].at, with.Residual(points[0].at, 1.25)), 1.25, 1e-9);
  for (Trend::Point& point : points) point.value = -point.value;
  against.Fit(points);
  EXPECT_EQ(against.slope(), 0);
  EXPECT_EQ(none.Residual(points[0].at, 0.5), 0.5);
}

TEST(Finalists, AreThoseThatMayBeTheFastest) {
  const std::vector<Contender> exact(20, {100, 0});
  EXPECT_EQ(FinalistCount(exact), 3u);
  std::vector<Contender> noisy;
  for (int i = 0; i < 20; ++i) noisy.push_back({100.0 + i, 0.02});
  EXPECT_EQ(FinalistCount(noisy), 6u);  // 2 √2 · 2 % of 100 is 5.7
  EXPECT_EQ(FinalistCount(std::span(noisy).first(2)), 2u);
  for (Contender& one : noisy) one.relative_error = 0.2;
  EXPECT_EQ(FinalistCount(noisy), 10u);
  EXPECT_EQ(FinalistCount({}), 0u);
}

/// Remembers, and wishes for nothing.
class Memory : public Strategy {
 public:
  using Strategy::ErrorOf;
  using Strategy::ranking;
  using Strategy::Strategy;
  int refined = 0;

 protected:
  std::optional<uint64_t> Propose() override { return std::nullopt; }
  void OnRefined(uint64_t, double) override { ++refined; }
};

TEST(Strategy, OfTwoResultsTheBetterKnownOneCounts) {
  const auto index = Present();
  for (const bool refined_last : {true, false}) {
    Memory memory("memory", index, {});
    const Configuration one = index->At(7);
    const Observation rough{one, 50.0, 0.5};
    const Observation fine{one, 300.0, 0.01};
    memory.Tell(refined_last ? rough : fine);
    memory.Tell(refined_last ? fine : rough);
    memory.Tell({one, std::nullopt});
    ASSERT_EQ(memory.ranking().size(), 1u);
    EXPECT_NEAR(std::exp(memory.ranking().begin()->first), 300, 1e-9);
    EXPECT_EQ(memory.ErrorOf(7), 0.01);
    EXPECT_EQ(memory.refined, refined_last ? 1 : 0);
  }
}

}  // namespace
}  // namespace atunner
