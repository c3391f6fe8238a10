#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "atunner/planning/comm/comm_choice.h"
#include "atunner/planning/comm/comm_table.h"
#include "atunner/planning/comm/tuner_rules.h"

namespace atunner::planning {
namespace {

using testing::HasSubstr;

TEST(TunerRules, ReadsTheLinesOfNcclsExample) {
  const auto rules = ReadTunerRules(
      "# comment\n"
      "allreduce,0,65536,tree,simple,2,1,-1,-1,1\n"
      "\n"
      "broadcast,32769,4294967295,ring,simple,2,-1,-1,1,0\r\n"
      "allgather,0,4294967295,ring,simple,4,2,-1\n"
      "allreduce,1048577,4294967295,ring,ll128,-1,-1,-1,4");
  ASSERT_TRUE(rules) << rules.error().ToString();
  ASSERT_EQ(rules->size(), 4u);
  EXPECT_EQ((*rules)[0], (TunerRule{Collective::kAllReduce,
                                    0,
                                    65536,
                                    {Algorithm::kTree, Protocol::kSimple, 2},
                                    1,
                                    -1,
                                    -1,
                                    1}));
  EXPECT_EQ((*rules)[2], (TunerRule{Collective::kAllGather,
                                    0,
                                    4294967295,
                                    {Algorithm::kRing, Protocol::kSimple, 4},
                                    2,
                                    -1,
                                    -1,
                                    -1}));
  EXPECT_EQ((*rules)[3].pipe_ops, 4);
}

TEST(TunerRules, TheTextReadsBack) {
  const std::vector<TunerRule> rules = {
      {Collective::kReduceScatter, 5, 9, {Algorithm::kPat, Protocol::kLl, -1}, 1, 2, -1, 0},
      {Collective::kReduce, 0, 1, {Algorithm::kNvlsTree, Protocol::kLl128, 7}, -1, -1, 3, -1}};
  EXPECT_EQ(ReadTunerRules(TunerRulesText(rules)).value(), rules);
}

TEST(TunerRules, ErrorsNameLineAndField) {
  const auto error = [](const char* text) { return ReadTunerRules(text).error().ToString(); };
  EXPECT_THAT(error("#\nallreduce,0,1,ring,ll\n"), HasSubstr("line 2: a rule has 8 to 10 fields"));
  EXPECT_THAT(error("gather,0,1,ring,ll,1,1,1"), HasSubstr("unknown collective 'gather'"));
  EXPECT_THAT(error("reduce,0,1,rings,ll,1,1,1"), HasSubstr("unknown algorithm 'rings'"));
  EXPECT_THAT(error("reduce,0,1,ring,ll256,1,1,1"), HasSubstr("unknown protocol 'll256'"));
  EXPECT_THAT(error("reduce,2,1,ring,ll,1,1,1"), HasSubstr("not a range"));
  EXPECT_THAT(error("reduce,0,1,ring,ll,-2,1,1"), HasSubstr("'-2' is neither"));
}

TEST(TunerRules, TheFirstMatchHolds) {
  const auto rules = ReadTunerRules(
                         "allreduce,0,100,ring,ll,1,1,2\n"
                         "allreduce,0,1000,tree,ll,1,-1,-1\n"
                         "allreduce,0,1000,ring,simple,1,-1,-1\n")
                         .value();
  EXPECT_EQ(FindTunerRule(rules, {.bytes = 100, .nodes = 1, .ranks = 2}), &rules[0]);
  EXPECT_EQ(FindTunerRule(rules, {.bytes = 100, .nodes = 1, .ranks = 4}), &rules[1]);
  EXPECT_EQ(FindTunerRule(rules, {.bytes = 1001}), nullptr);
  EXPECT_EQ(FindTunerRule(rules, {.collective = Collective::kReduce, .bytes = 1}), nullptr);
}

CommRow Final(int64_t bytes, std::optional<CommChoice> choice, std::vector<double> us) {
  return {Collective::kAllReduce, bytes, choice, CommStage::kFinal, std::move(us)};
}

std::vector<double> Around(double us, int turns, double swing) {
  std::vector<double> samples;
  for (int i = 0; i < turns; ++i) samples.push_back(us + (i % 2 == 0 ? swing : -swing));
  return samples;
}

constexpr CommChoice kRingLl{Algorithm::kRing, Protocol::kLl, 4};
constexpr CommChoice kRingSimple{Algorithm::kRing, Protocol::kSimple, 8};

TEST(CommChoice, ACoinIsNoEvidence) {
  EXPECT_NEAR(SignTest(0, 5), 1.0, 1e-12);
  EXPECT_NEAR(SignTest(5, 5), 1.0 / 32, 1e-12);
  EXPECT_NEAR(SignTest(4, 5), 6.0 / 32, 1e-12);
}

TEST(CommChoice, TakesWhatWonAllTurns) {
  CommTable table{.gpus = 2};
  table.rows = {Final(1024, {}, Around(20, 17, 0.1)), Final(1024, kRingLl, Around(15, 17, 0.1))};
  const auto decisions = ChooseComm(table).value();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].choice, kRingLl);
  EXPECT_EQ(decisions[0].wins, 17);
  EXPECT_NEAR(decisions[0].gain(), 0.25, 0.01);
}

TEST(CommChoice, KeepsNcclsOwnWhereTheTurnsDisagree) {
  CommTable table{.gpus = 2};
  auto better_on_average = Around(20, 17, 0.0);
  for (size_t i = 0; i < 12; ++i) better_on_average[i] = 15;  // 12 of 17: p = 0.07
  table.rows = {Final(1024, {}, Around(20, 17, 0.0)), Final(1024, kRingLl, better_on_average)};
  const auto decision = ChooseComm(table).value()[0];
  EXPECT_EQ(decision.choice, std::nullopt);
  EXPECT_EQ(decision.runner_up, kRingLl);
  EXPECT_EQ(decision.chosen_us, decision.default_us);
}

TEST(CommChoice, KeepsNcclsOwnForLessThanAPercent) {
  CommTable table{.gpus = 2};
  table.rows = {Final(1024, {}, Around(20, 17, 0)), Final(1024, kRingLl, Around(19.9, 17, 0))};
  EXPECT_EQ(ChooseComm(table).value()[0].choice, std::nullopt);
}

TEST(CommChoice, RulesHoldBetweenTheMiddlesOfMeasuredSizes) {
  CommTable table{.gpus = 2};
  for (const int64_t bytes : {1024, 4096, 16384, 65536}) {
    table.rows.push_back(Final(bytes, {}, Around(20, 17, 0.1)));
    const bool same = bytes == 16384;
    table.rows.push_back(
        Final(bytes, bytes < 16384 ? kRingLl : kRingSimple, Around(same ? 20 : 10, 17, 0.1)));
  }
  const auto rules = RulesOf(ChooseComm(table).value(), 2);
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0], (TunerRule{Collective::kAllReduce, 1024, 8192, kRingLl, 1, 2, -1, -1}));
  EXPECT_EQ(rules[1], (TunerRule{Collective::kAllReduce, 32769, 65536, kRingSimple, 1, 2, -1, -1}));
}

TEST(CommChoice, ATableWithoutFinalRowsIsRefused) {
  CommTable table{.gpus = 2};
  EXPECT_FALSE(ChooseComm(table));
  table.rows = {Final(1024, kRingLl, {1.0})};
  EXPECT_THAT(ChooseComm(table).error().what, HasSubstr("NCCL's own choice"));
}

TEST(CommTable, ErrorsNameTheRow) {
  const auto error = [](const std::string& row) {
    return ReadCommTable(R"({"schema":"atunner.comm-table/1","gpus":2,"rows":[)" + row + "]}")
        .error()
        .ToString();
  };
  EXPECT_THAT(error("1"), HasSubstr("rows[0]: must be an object"));
  EXPECT_THAT(error(R"({"collective":"allreduce","bytes":0,"stage":"final"})"),
              HasSubstr("rows[0]: needs collective"));
  EXPECT_THAT(
      error(
          R"({"collective":"allreduce","bytes":8,"stage":"final","algorithm":"default","us":[]})"),
      HasSubstr("\"us\" must list"));
  EXPECT_THAT(
      error(R"({"collective":"allreduce","bytes":8,"stage":"final","algorithm":"ring","us":[1]})"),
      HasSubstr("needs algorithm, protocol"));
  EXPECT_THAT(ReadCommTable("{}").error().ToString(), HasSubstr("schema"));
}

}  // namespace
}  // namespace atunner::planning
