#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "atunner/search/candidate_source.h"
#include "atunner/search/searcher.h"

namespace atunner {
namespace {

using testing::HasSubstr;

std::shared_ptr<const SpaceIndex> Synthetic() {
  ParameterSpace space;
  for (const char* name : {"x", "y", "z"}) {
    Parameter parameter{name, {}, ""};
    for (int64_t v = 1; v <= 512; v *= 2) parameter.values.emplace_back(v);
    space.parameters.push_back(parameter);
  }
  space.parameters.push_back({"mode", {std::string("a"), std::string("b"), std::string("c")}, ""});
  space.constraints = {{Expr::MustParse("x * y <= 32768"), ""}};
  return std::make_shared<const SpaceIndex>(SpaceIndex::Build(space, {}).value());
}

/// A valley with failures on one side.
std::optional<double> Objective(const Configuration& one) {
  const double x = std::log2(ToDouble(one.values[0]));
  const double y = std::log2(ToDouble(one.values[1]));
  const double z = std::log2(ToDouble(one.values[2]));
  const std::string mode = ToString(one.values[3]);
  if (mode == "c" && z > 5) return std::nullopt;
  return 100 + 8 * (x - 6) * (x - 6) + 5 * (y - 3) * (y - 3) + 3 * std::fabs(z - 4) +
         (mode == "b" ? 0 : 40) + 3 * (x - y - 3) * (x - y - 3);
}

double BestAfter(const std::string& strategy, uint64_t seed, int budget) {
  auto searcher = MakeSearcher(strategy, Synthetic(), {.seed = seed}).value();
  double best = INFINITY;
  for (int i = 0; i < budget; ++i) {
    const auto asked = searcher->Ask(1);
    const auto objective = Objective(asked.at(0));
    searcher->Tell({asked[0], objective});
    if (objective) best = std::min(best, *objective);
  }
  return best;
}

TEST(Bayes, BeatsRandomInTheMedian) {
  std::vector<double> bayes;
  std::vector<double> random;
  for (uint64_t seed = 1; seed <= 11; ++seed) {
    bayes.push_back(BestAfter("bayes", seed, 45));
    random.push_back(BestAfter("random", seed, 45));
  }
  std::ranges::sort(bayes);
  std::ranges::sort(random);
  EXPECT_LT(bayes[5] - 100, 0.5 * (random[5] - 100)) << bayes[5] << " against " << random[5];
}

class EveryStrategy : public testing::TestWithParam<std::string> {};

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const StrategyInfo& info : Strategies()) names.push_back(info.name);
  return names;
}

TEST_P(EveryStrategy, CoversASmallSpaceWithoutRepeatsUnderFaults) {
  ParameterSpace space;
  space.parameters = {{"a", {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}}, ""},
                      {"b", {int64_t{1}, int64_t{2}, int64_t{3}}, ""}};
  const auto index = std::make_shared<const SpaceIndex>(SpaceIndex::Build(space, {}).value());
  SearchOptions options{.seed = 5};
  options.first = Configuration{{int64_t{3}, int64_t{2}}};
  auto searcher = MakeSearcher(GetParam(), index, options).value();
  searcher->Tell({index->At(0), 5.0});  // known from an earlier run
  std::set<uint64_t> seen;
  for (int round = 0; round < 20; ++round) {
    const auto asked = searcher->Ask(3);
    if (round == 0) EXPECT_EQ(asked.at(0), *options.first);
    for (size_t i = 0; i < asked.size(); ++i) {
      EXPECT_TRUE(seen.insert(index->IndexOf(asked[i])).second) << "asked twice";
      if (i == 1) continue;  // lost: never told
      searcher->Tell(
          {asked[i], i == 2 ? std::nullopt : std::optional(10.0 + static_cast<double>(i))});
      searcher->Tell({asked[i], 10.0});  // told twice
    }
  }
  EXPECT_EQ(seen.size(), 11u) << "all but the one known before";
  EXPECT_TRUE(searcher->Ask(5).empty());
}

TEST_P(EveryStrategy, IsDeterministic) {
  const auto run = [&] {
    auto searcher = MakeSearcher(GetParam(), Synthetic(), {.seed = 9}).value();
    std::string trace;
    for (int i = 0; i < 25; ++i) {
      const auto asked = searcher->Ask(1);
      trace += Synthetic()->space().Describe(asked[0]) + ";";
      searcher->Tell({asked[0], Objective(asked[0])});
    }
    return trace;
  };
  EXPECT_EQ(run(), run());
}
INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, testing::ValuesIn(Names()),
                         [](const auto& one) { return one.param; });

TEST(MakeSearcher, UnknownNameListsStrategies) {
  EXPECT_THAT(MakeSearcher("baies", Synthetic(), {}).error().ToString(),
              HasSubstr("annealing, auto, bayes,"));
}

TEST(CandidateSources, ASearcherOverASpaceIsOne) {
  const auto index = Synthetic();
  const Configuration preferred = index->At(5);
  SearcherSource source(MakeSearcher("random", index, {.first = preferred}).value(), index->space(),
                        preferred);
  const std::vector<Candidate> asked = source.Ask(3);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(*asked[0].configuration(), preferred);
  EXPECT_EQ(asked[0].provenance.proposer, "default");
  EXPECT_EQ(asked[1].provenance.proposer, "search:random");
  EXPECT_EQ(asked[1].id, index->space().DigestOfConfiguration(*asked[1].configuration()));
  source.Tell({MakeSourceCandidate({}, {"user", ""}), 1.0});  // ignored: no configuration
  source.Tell({asked[0], 1.0});
}

TEST(CandidateSources, AListIsProposedOnceInItsOrder) {
  RenderedKernel first, second;
  first.source.text = "first";
  second.source.text = "second";
  ListedCandidates source(
      {MakeSourceCandidate(first, {"user", ""}), MakePtxCandidate(second, {"user", ""})});
  EXPECT_EQ(source.Ask(1).at(0).kernel()->source.text, "first");
  EXPECT_EQ(source.Ask(5).at(0).kernel()->source.text, "second");
  EXPECT_TRUE(source.Ask(5).empty());
}

}  // namespace
}  // namespace atunner
