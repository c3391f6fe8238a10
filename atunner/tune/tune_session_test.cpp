// The loop with a judge that knows the answers: who wins, and when it ends.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "atunner/tune/tune_session_fixture_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;

// Twenty that cheat among twenty honest ones, all of them "faster" than any honest kernel.
void FillWithTwentyHostiles(KnowingJudge& judge, bool deceive_the_screening) {
  const VerdictKind caught[] = {VerdictKind::kWrongResult, VerdictKind::kStaleResult,
                                VerdictKind::kNotWritten,  VerdictKind::kOutOfBounds,
                                VerdictKind::kTimeout,     VerdictKind::kCrash,
                                VerdictKind::kBelowFloor,  VerdictKind::kRace,
                                VerdictKind::kNonFinite,   VerdictKind::kLowPrecision};
  for (int i = 0; i < 40; ++i) {
    KnowingJudge::Candidate& one = judge.candidates[std::to_string(i)];
    const bool honest = i % 2 == 0;
    one.ns = honest ? 1e8 + 1e6 * i : 1e5 + i;
    if (honest) continue;
    if (deceive_the_screening)
      one.with_new_inputs = caught[i / 2 % 10];
    else
      one.verdict = caught[i / 2 % 10];
  }
  judge.candidates["12"].ns = 0.5e8;
}

TEST_F(TuneSessionTest, TwentyHostileCandidatesDoNotWin) {
  FillWithTwentyHostiles(judge_, false);
  const TuneResult result = Tune(Schedule(40));
  EXPECT_EQ(Winner(result), "12");
  EXPECT_EQ(result.trials.size(), 40u);
  ASSERT_TRUE(result.best);
  EXPECT_TRUE(result.best->verdict.correct());
  EXPECT_EQ(*result.best->ObjectiveNs(), 0.5e8);
  EXPECT_EQ(std::ranges::count_if(result.trials,
                                  [](const Trial& trial) { return !trial.verdict.correct(); }),
            20);
  EXPECT_EQ(judge_.begun.size(), 2u) << "the final round has a process of its own";
  EXPECT_NE(judge_.begun[0], judge_.begun[1]) << "and inputs of its own";
}

/// Finds races in those named.
class RaceFinder : public Judge {
 public:
  Status Begin(const JudgeTask&) override { return {}; }
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder&) override {
    examined.push_back(candidate.module.ptx);
    JudgeAnswer answer;
    if (racy.contains(candidate.module.ptx)) answer.verdict.kind = VerdictKind::kRace;
    return answer;
  }
  Result<Comparison> Compare(const CandidateKernel&, const CandidateKernel&, int,
                             uint64_t) override {
    return Comparison{};
  }
  Result<Baseline> CompareVendor(const std::string&, const CandidateKernel&, int,
                                 uint64_t) override {
    return Baseline{};
  }
  std::set<std::string> racy;
  std::vector<std::string> examined;
};

TEST_F(TuneSessionTest, WhoRacesOnTheVirtualGpuDoesNotWin) {
  for (int i = 0; i < 8; ++i) judge_.candidates[std::to_string(i)].ns = 1e6 + 1e5 * i;
  RaceFinder finder;
  finder.racy = {"0", "1"};
  virtual_judge_ = &finder;
  const TuneResult result = Tune(Schedule(8));
  EXPECT_EQ(Winner(result), "2");
  EXPECT_EQ(finder.examined, (std::vector<std::string>{"0", "1", "2"})) << "only who would win";
}

TEST_F(TuneSessionTest, AllResultsOfAUsersKernelAreExaminedOnTheVirtualGpu) {
  for (int i = 0; i < 8; ++i) judge_.candidates[std::to_string(i)].ns = 1e6 + 1e5 * i;
  RaceFinder finder;
  finder.racy = {"0", "5"};
  virtual_judge_ = &finder;
  Schedule schedule(8);
  schedule.IsOfAUser();
  const TuneResult result = Tune(schedule);
  EXPECT_EQ(Winner(result), "1");
  EXPECT_EQ(std::set<std::string>(finder.examined.begin(), finder.examined.end()).size(), 8u);
  EXPECT_EQ(finder.examined.size(), 8u) << "each once";
  for (const Trial& trial : result.trials) {
    const std::string id = ToString(trial.configuration().values[0]);
    const bool racy = finder.racy.contains(id);
    EXPECT_EQ(trial.verdict.kind, racy ? VerdictKind::kRace : VerdictKind::kCorrect) << id;
    EXPECT_EQ(trial.measurement.has_value(), !racy) << id;
  }
}

TEST_F(TuneSessionTest, RefusalsOfTheFinalsAreInTheRecord) {
  judge_.other.ns = 1e8;
  judge_.candidates["3"].ns = 1e6;
  judge_.candidates["3"].with_new_inputs = VerdictKind::kStaleResult;
  const TuneResult result = Tune(Schedule(6));
  for (const Trial& trial : result.trials) {
    const bool deceives = ToString(trial.configuration().values[0]) == "3";
    EXPECT_EQ(trial.verdict.kind, deceives ? VerdictKind::kStaleResult : VerdictKind::kCorrect);
  }
}

TEST_F(TuneSessionTest, NotEvenThoseThatDeceiveTheScreening) {
  FillWithTwentyHostiles(judge_, true);
  const TuneResult result = Tune(Schedule(40));
  EXPECT_EQ(Winner(result), "12");
  ASSERT_TRUE(result.best);
  EXPECT_TRUE(result.best->verdict.correct());
}

TEST_F(TuneSessionTest, TheWinnerIsTheBestOfTheFinalRound) {
  for (int i = 0; i < 6; ++i) judge_.candidates[std::to_string(i)].ns = 1e8 + 1e6 * i;
  judge_.candidates["0"].final_ns = 2e8;  // was lucky while it was screened
  judge_.candidates["2"].final_ns = 0.9e8;
  const TuneResult result = Tune(Schedule(6));
  EXPECT_EQ(Winner(result), "2");
  EXPECT_EQ(*result.best->ObjectiveNs(), 0.9e8) << "the number that is reported is the final one";
  ASSERT_TRUE(result.winner_source);
  EXPECT_EQ(result.winner_source->source.text, "2");
}

TEST_F(TuneSessionTest, TheFirstRightOneIsJudgedOnceAndEndsTheSession) {
  request_.thoroughness = Thoroughness::kFirstRight;
  request_.budget.trials = 11;
  judge_.candidates["0"].verdict = VerdictKind::kWrongResult;
  compiler_.broken = {"3"};
  const TuneResult result = Tune(Schedule(6, /*naive=*/true));
  EXPECT_THAT(judge_.examined, testing::SizeIs(2));
  EXPECT_EQ(judge_.examined.front(), "0") << "the schedule's own choice comes first";
  EXPECT_EQ(Winner(result), judge_.examined.back());
  EXPECT_EQ(judge_.begun, std::vector<uint64_t>{kSeed}) << "no final round";
  EXPECT_TRUE(judge_.compared.empty());
  EXPECT_TRUE(result.best->verdict.correct());
}

TEST_F(TuneSessionTest, WithoutARightOneTheBudgetEndsTheFirstGuesses) {
  request_.thoroughness = Thoroughness::kFirstRight;
  request_.budget.trials = 3;
  judge_.other.verdict = VerdictKind::kWrongResult;
  const TuneResult result = Tune(Schedule(6));
  EXPECT_EQ(result.trials.size(), 3u);
  EXPECT_FALSE(result.best);
  EXPECT_EQ(result.stop_reason, "trial budget spent");
}

TEST_F(TuneSessionTest, WhatIsNotCheckedIsJudgedByNobody) {
  request_.thoroughness = Thoroughness::kUnchecked;
  const TuneResult result = Tune(Schedule(6));
  EXPECT_EQ(Winner(result), "0");
  EXPECT_TRUE(judge_.examined.empty() && judge_.begun.empty());
  EXPECT_EQ(result.best->verdict.kind, VerdictKind::kUnchecked);
  EXPECT_FALSE(result.best->verdict.coverage.whole());
}

TEST_F(TuneSessionTest, WhereAllFailNobodyWins) {
  judge_.other.verdict = VerdictKind::kWrongResult;
  const TuneResult result = Tune(Schedule(12));
  EXPECT_EQ(result.trials.size(), 12u);
  EXPECT_FALSE(result.best);
  EXPECT_FALSE(result.winner);
  EXPECT_EQ(result.stop_reason, "every configuration was tried");
  EXPECT_EQ(events_.back(), TuneEvent::Kind::kFinished);
}

TEST_F(TuneSessionTest, WhereAllFinalistsFailNobodyWins) {
  judge_.other.ns = 1e8;
  judge_.other.with_new_inputs = VerdictKind::kStaleResult;
  const TuneResult result = Tune(Schedule(20));
  EXPECT_FALSE(result.best) << "not even the one that passed the screening";
  EXPECT_NE(said_.find("is refused, stale-result"), std::string::npos) << said_;
}

TEST_F(TuneSessionTest, WhatDoesNotRenderOrCompileIsATrialToo) {
  Schedule schedule(4);
  schedule.unrenderable = {"1"};
  compiler_.broken = {"2"};
  const TuneResult result = Tune(schedule);
  ASSERT_EQ(result.trials.size(), 4u);
  for (const Trial& trial : result.trials) {
    const std::string id = ToString(trial.configuration().values[0]);
    EXPECT_EQ(trial.verdict.kind,
              id == "1" || id == "2" ? VerdictKind::kCompileError : VerdictKind::kCorrect)
        << id;
  }
  EXPECT_EQ(std::ranges::count(judge_.examined, "2"), 0);
}

TEST_F(TuneSessionTest, TheDefaultComesFirstAndNobodyIsJudgedTwice) {
  const TuneResult result = Tune(Schedule(30));
  EXPECT_EQ(judge_.examined[0], "0");
  EXPECT_EQ(result.trials[0].proposer(), "default");
  EXPECT_NE(result.trials[1].proposer(), "default");
  const std::set<std::string> distinct(judge_.examined.begin(), judge_.examined.begin() + 30);
  EXPECT_EQ(distinct.size(), 30u);
  for (size_t i = 0; i < result.trials.size(); ++i)
    EXPECT_EQ(result.trials[i].number, static_cast<int64_t>(i) + 1);
}

TEST_F(TuneSessionTest, EqualBinariesAreJudgedOnce) {
  compiler_.twins = {{"5", "0"}, {"7", "3"}};
  judge_.candidates["3"].verdict = VerdictKind::kWrongResult;
  judge_.candidates["0"].ns = 1e6;
  const TuneResult result = Tune(Schedule(10));
  ASSERT_EQ(result.trials.size(), 10u);
  EXPECT_EQ(std::ranges::count(judge_.examined, "5") + std::ranges::count(judge_.examined, "0"), 2)
      << "once, and once as a finalist";
  EXPECT_EQ(std::ranges::count(judge_.examined, "3") + std::ranges::count(judge_.examined, "7"), 1);
  int copies = 0;
  for (const Trial& trial : result.trials) {
    if (trial.same_as == 0) continue;
    ++copies;
    const Trial& first = result.trials[trial.same_as - 1];
    EXPECT_LT(first.number, trial.number);
    EXPECT_EQ(first.verdict.kind, trial.verdict.kind);
    EXPECT_EQ(first.ObjectiveNs(), trial.ObjectiveNs());
  }
  EXPECT_EQ(copies, 2);
}

TEST_F(TuneSessionTest, TheTrialBudgetIsExact) {
  for (int64_t trials : {1, 2, 7}) {
    judge_.examined.clear();
    request_.budget.trials = trials;
    const TuneResult result = Tune(Schedule(50));
    EXPECT_EQ(result.trials.size(), static_cast<size_t>(trials));
    EXPECT_EQ(result.stop_reason, "trial budget spent");
    EXPECT_EQ(judge_.examined.size(), static_cast<size_t>(trials + std::min<int64_t>(trials, 3)))
        << "and the finalists";
  }
}

TEST_F(TuneSessionTest, TheTimeBudgetEndsTheLoopAfterTheTrialThatSpendsIt) {
  judge_.seconds = 10;
  request_.budget.seconds = 35;
  const TuneResult result = Tune(Schedule(50));
  EXPECT_EQ(result.stop_reason, "time budget spent");
  EXPECT_EQ(result.trials.size(), 4u);
  EXPECT_DOUBLE_EQ(result.seconds, 60) << "four trials and two finalists, whose time was up then";
  EXPECT_DOUBLE_EQ(result.judge_seconds, 60);
}

// A user's kernel took 60 s on a busy machine, so that a budget of 10 s became two minutes.
TEST_F(TuneSessionTest, ALongBaselineTakesFromTheSearch) {
  judge_.seconds = 10;
  request_.budget.seconds = 35;
  const TuneResult result = Tune(Schedule(50, true));
  EXPECT_EQ(result.trials.size(), 3u) << "of 35 s the baseline takes what it needs beyond 5";
  judge_.seconds = 100;
  EXPECT_EQ(Tune(Schedule(50, true)).trials.size(), 1u);
}

// A search of a second on a busy machine ended with a kernel that was slower than the schedule's
// own choice.
TEST_F(TuneSessionTest, TimeIsNotUpBeforeTheFirstGuessWasJudged) {
  judge_.seconds = 10;
  request_.budget.seconds = 15;
  request_.compile_threads = 4;
  request_.in_order = false;
  compiler_.slow = "0";
  judge_.candidates["0"].ns = 1e6;
  const TuneResult result = Tune(Schedule(50));
  EXPECT_EQ(result.stop_reason, "time budget spent");
  EXPECT_THAT(judge_.examined, testing::Contains("0"));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->ObjectiveNs(), 1e6);
}

TEST_F(TuneSessionTest, TimeSpentBeforeAnInterruptionCounts) {
  judge_.seconds = 10;
  request_.budget.seconds = 35;
  RunRecord run;
  run.seconds = 20;
  EXPECT_EQ(Tune(Schedule(50), nullptr, run).trials.size(), 2u);
}

TEST_F(TuneSessionTest, NothingIsLookedForAtThePhysicalFloor) {
  // 4 MiB in, 4 MiB out of which 1 MiB stays in L2, at 1000 GB/s.
  const double floor_ns = 7.0 * (1 << 20) / 1000;
  for (int i = 0; i < 50; ++i) judge_.candidates[std::to_string(i)].ns = 2 * floor_ns;
  judge_.candidates["0"].ns = 1.05 * floor_ns;
  TuneResult result = Tune(Schedule(50));
  EXPECT_DOUBLE_EQ(result.floor_ns, floor_ns);
  EXPECT_EQ(result.trials.size(), 50u) << "5 % above it is not close";
  judge_.candidates["0"].ns = 1.03 * floor_ns;
  result = Tune(Schedule(50));
  EXPECT_EQ(result.trials.size(), 1u);
  EXPECT_THAT(result.stop_reason, HasSubstr("physical floor"));
}

TEST_F(TuneSessionTest, TheBestSoFarIsWhatOthersRaceAgainst) {
  for (int i = 0; i < 5; ++i) judge_.candidates[std::to_string(i)].ns = 1e8 - 1e6 * i;
  request_.compile_threads = 1;
  const TuneResult result = Tune(Schedule(5));
  EXPECT_FALSE(judge_.incumbents[0]);
  double best = 1e300;
  for (size_t i = 0; i < 5; ++i) {
    if (i > 0) EXPECT_EQ(judge_.incumbents[i], best) << i;
    best = std::min(best, *result.trials[i].ObjectiveNs());
  }
  for (size_t i = 5; i < judge_.incumbents.size(); ++i)
    EXPECT_FALSE(judge_.incumbents[i]) << "finalists do not race";
}

TEST_F(TuneSessionTest, AStopEndsItWithWhatWasFound) {
  stop_after_ = 3;
  judge_.other.ns = 1e8;
  const TuneResult result = Tune(Schedule(50));
  EXPECT_EQ(result.trials.size(), 3u);
  EXPECT_EQ(result.stop_reason, "stopped by the user");
  EXPECT_TRUE(result.best);
}

RenderedKernel WholeKernel(const std::string& text) {
  RenderedKernel kernel;
  kernel.source.text = text;
  LaunchStep step;
  step.entry = "k";
  kernel.plan.steps = {step};
  return kernel;
}

TEST_F(TuneSessionTest, AKernelOfAnotherSourceCanWin) {
  judge_.other.ns = 1e8;
  judge_.candidates["fast"].ns = 5e7;
  judge_.candidates["wrong"].verdict = VerdictKind::kWrongResult;
  judge_.whole_kernels = {"fast", "wrong", "ptx"};
  ListedCandidates listed({MakeSourceCandidate(WholeKernel("fast"), {"llm:some", "one pass"}),
                           MakeSourceCandidate(WholeKernel("fast"), {"user", "the same again"}),
                           MakeSourceCandidate(WholeKernel("wrong"), {"user", ""}),
                           MakePtxCandidate(WholeKernel("ptx"), {"user", ""})});
  request_.sources = {&listed};
  const TuneResult result = Tune(Schedule(6));
  EXPECT_EQ(Winner(result), "fast");
  EXPECT_EQ(result.best->proposer(), "llm:some");
  EXPECT_EQ(result.winner_source->source.text, "fast");
  EXPECT_EQ(result.trials.size(), 6u + 3u) << "the same kernel is judged once";
  EXPECT_EQ(result.trials[0].proposer(), "default") << "the schedule's own choice comes first";
  const auto kinds = [&](CandidateKind kind) {
    return std::ranges::count_if(
        result.trials, [&](const Trial& trial) { return trial.candidate.kind() == kind; });
  };
  EXPECT_EQ(kinds(CandidateKind::kSource), 2);
  EXPECT_EQ(kinds(CandidateKind::kPtx), 1);
}

}  // namespace
}  // namespace atunner
