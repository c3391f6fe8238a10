// The loop with a judge that knows the answers: who wins, when it ends, what is remembered.
#include "atunner/tune/tune_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "atunner/model/json.h"

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSeed = 7;

/// One parameter "id" with `count` values; the kernel's text is its id. n floats in, n floats out.
class Schedule : public ScheduleTemplate {
 public:
  explicit Schedule(int64_t count, bool naive = false) : naive_(naive) {
    Parameter id{"id", {}, ""};
    for (int64_t i = 0; i < count; ++i) id.values.emplace_back(i);
    space_.parameters = {id};
    spec_.name = "task";
    spec_.dims = {{"n", int64_t{1} << 20}};
    spec_.args = {{.name = "x", .role = Role::kInput, .shape = {Expr::MustParse("n")}, .value = {}, .fill = {}},
                  {.name = "y", .role = Role::kOutput, .shape = {Expr::MustParse("n")}, .value = {}, .fill = {}}};
  }
  void IsOfAUser() { spec_.oracle.kind = Oracle::Kind::kKernel; }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return {{int64_t{0}}}; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const std::string id = ToString(configuration.values[0]);
    if (unrenderable.contains(id)) return Invalid("cannot be written");
    RenderedKernel kernel = Text(id);
    if (const auto bytes = shared.find(id); bytes != shared.end()) kernel.plan.steps[0].shared_bytes = bytes->second;
    return kernel;
  }
  std::optional<RenderedKernel> Naive() const override { return naive_ ? std::optional(Text("naive")) : std::nullopt; }
  std::vector<Dims> CheckDims(const Configuration&) const override { return {{{"n", 64}}}; }

  std::set<std::string> unrenderable;
  std::map<std::string, int64_t> shared;  ///< dynamic shared memory by id

 private:
  static RenderedKernel Text(const std::string& text) {
    RenderedKernel kernel;
    kernel.source.text = text;
    LaunchStep step;
    step.entry = "k";
    kernel.plan.steps = {step};
    return kernel;
  }
  KernelSpec spec_;
  ParameterSpace space_;
  bool naive_;
};

class TextCompiler : public Compiler {
 public:
  Result<CompileOutcome> Compile(const CompileRequest& request, const std::stop_token& = {}) override {
    if (slow == request.source.text) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CompileOutcome outcome;
    if (broken.contains(request.source.text)) {
      outcome.error = "mine.cu(3): error";
      return outcome;
    }
    outcome.module.emplace();
    outcome.module->ptx = request.source.text;
    const auto twin = twins.find(request.source.text);
    outcome.module->binary = DigestOf(std::string_view(twin == twins.end() ? request.source.text : twin->second));
    return outcome;
  }
  std::string Version() const override { return "text"; }
  std::set<std::string> broken;
  std::string slow;
  std::map<std::string, std::string> twins;  ///< text → text that compiles to the same binary
};

/// Answers by the candidate's text. Time passes on the clock while it works.
class KnowingJudge : public Judge {
 public:
  struct Candidate {
    VerdictKind verdict = VerdictKind::kCorrect;
    double ns = 1e9;  ///< what is measured
    /// Deceives the screening and is caught with inputs nobody saw before.
    std::optional<VerdictKind> with_new_inputs;
    double final_ns = 0;  ///< measured at length, if other than `ns`
  };

  explicit KnowingJudge(ManualClock& clock) : clock_(clock) {}

  Status Begin(const JudgeTask& task) override {
    begun.push_back(task.seed);
    return {};
  }
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override {
    clock_.Advance(seconds);
    examined.push_back(candidate.module.ptx);
    incumbents.push_back(order.incumbent_ns);
    EXPECT_EQ(candidate.check_dims.size(), 1u);
    const Candidate& known = candidates.contains(candidate.module.ptx) ? candidates[candidate.module.ptx] : other;
    JudgeAnswer answer;
    const bool final_round = order.seed != kSeed;
    EXPECT_EQ(order.thorough, final_round);
    answer.verdict.kind = final_round && known.with_new_inputs ? *known.with_new_inputs : known.verdict;
    if (!answer.verdict.correct()) {
      answer.verdict.reason = "was caught";
      return answer;
    }
    answer.measurement.emplace();
    answer.measurement->median_ns = final_round && known.final_ns > 0 ? known.final_ns : known.ns;
    return answer;
  }
  Result<Comparison> Compare(const CandidateKernel& baseline, const CandidateKernel& candidate, int pairs,
                             uint64_t) override {
    if (comparing_fails) return Fail(ErrorCode::kUnavailable, "the runner died of signal 9");
    compared.emplace_back(baseline.module.ptx, candidate.module.ptx);
    return Comparison{3, 2.9, 3.1, pairs};
  }
  Result<Baseline> CompareVendor(const std::string& name, const CandidateKernel& candidate, int pairs,
                                 uint64_t) override {
    if (comparing_fails) return Fail(ErrorCode::kUnavailable, "the runner died of signal 9");
    compared.emplace_back(name, candidate.module.ptx);
    Baseline baseline;
    baseline.name = name;
    baseline.comparison = Comparison{0.9, 0.8, 1, pairs};
    return baseline;
  }

  std::map<std::string, Candidate> candidates;
  Candidate other;  ///< whoever is not listed
  double seconds = 0;
  bool comparing_fails = false;
  std::vector<std::string> examined;
  std::vector<std::optional<double>> incumbents;
  std::vector<uint64_t> begun;
  std::vector<std::pair<std::string, std::string>> compared;

 private:
  ManualClock& clock_;
};

class TuneSessionTest : public testing::Test {
 protected:
  TuneSessionTest() {
    request_.profile.dram_gbps = 1000;
    request_.profile.l2_bytes = 1 << 20;
    request_.arch = "sm_80";
    request_.strategy = "random";
    request_.seed = kSeed;
  }
  Result<TuneResult> TryTune(const Schedule& schedule, Store* store = nullptr, const RunRecord& run = {}) {
    request_.schedule = &schedule;
    TuneSession session(request_, compiler_, judges_, clock_, virtual_judge_);
    return session.Run(store, run, stop_, [&](const TuneEvent& event) {
      events_.push_back(event.kind);
      if (event.kind == TuneEvent::Kind::kFinalists) said_ += event.text + "\n";
      if (stop_after_ && event.kind == TuneEvent::Kind::kTrial && event.trials_done == *stop_after_) stop_ = true;
    });
  }
  TuneResult Tune(const Schedule& schedule, Store* store = nullptr, const RunRecord& run = {}) {
    auto result = TryTune(schedule, store, run);
    EXPECT_TRUE(result) << result.error().ToString();
    return *std::move(result);
  }
  static std::string Winner(const TuneResult& result) { return result.winner ? result.winner->module.ptx : "nobody"; }

  ManualClock clock_;
  TextCompiler compiler_;
  KnowingJudge judge_{clock_};
  std::vector<Judge*> judges_ = {&judge_};
  Judge* virtual_judge_ = nullptr;
  TuneRequest request_;
  std::atomic<bool> stop_ = false;
  std::optional<int64_t> stop_after_;
  std::vector<TuneEvent::Kind> events_;
  std::string said_;  ///< of the finalists
};

// Twenty that cheat among twenty honest ones, all of them "faster" than any honest kernel.
void FillWithTwentyHostiles(KnowingJudge& judge, bool deceive_the_screening) {
  const VerdictKind caught[] = {VerdictKind::kWrongResult, VerdictKind::kStaleResult, VerdictKind::kNotWritten,
                                VerdictKind::kOutOfBounds, VerdictKind::kTimeout,     VerdictKind::kCrash,
                                VerdictKind::kBelowFloor,  VerdictKind::kRace,        VerdictKind::kNonFinite,
                                VerdictKind::kLowPrecision};
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
  EXPECT_EQ(std::ranges::count_if(result.trials, [](const Trial& trial) { return !trial.verdict.correct(); }), 20);
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
  Result<Comparison> Compare(const CandidateKernel&, const CandidateKernel&, int, uint64_t) override {
    return Comparison{};
  }
  Result<Baseline> CompareVendor(const std::string&, const CandidateKernel&, int, uint64_t) override {
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
    const std::string id = ToString(trial.configuration.values[0]);
    EXPECT_EQ(trial.verdict.kind, id == "1" || id == "2" ? VerdictKind::kCompileError : VerdictKind::kCorrect) << id;
  }
  EXPECT_EQ(std::ranges::count(judge_.examined, "2"), 0);
}

TEST_F(TuneSessionTest, TheDefaultComesFirstAndNobodyIsJudgedTwice) {
  const TuneResult result = Tune(Schedule(30));
  EXPECT_EQ(judge_.examined[0], "0");
  EXPECT_EQ(result.trials[0].proposer, "default");
  EXPECT_NE(result.trials[1].proposer, "default");
  const std::set<std::string> distinct(judge_.examined.begin(), judge_.examined.begin() + 30);
  EXPECT_EQ(distinct.size(), 30u);
  for (size_t i = 0; i < result.trials.size(); ++i) EXPECT_EQ(result.trials[i].number, static_cast<int64_t>(i) + 1);
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
  EXPECT_DOUBLE_EQ(result.seconds, 70) << "four trials and three finalists";
  EXPECT_DOUBLE_EQ(result.judge_seconds, 70);
}

// A search of a second on a busy machine ended with a kernel that was slower than the schedule's own choice.
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
  for (size_t i = 5; i < judge_.incumbents.size(); ++i) EXPECT_FALSE(judge_.incumbents[i]) << "finalists do not race";
}

TEST_F(TuneSessionTest, AStopEndsItWithWhatWasFound) {
  stop_after_ = 3;
  judge_.other.ns = 1e8;
  const TuneResult result = Tune(Schedule(50));
  EXPECT_EQ(result.trials.size(), 3u);
  EXPECT_EQ(result.stop_reason, "stopped by the user");
  EXPECT_TRUE(result.best);
}

class ResumeTest : public TuneSessionTest {
 protected:
  void SetUp() override {
    store_ = Store::Open(folder_.path() / "s.db").value();
    RunRecord wanted;
    wanted.id = "first";
    wanted.key = "the key";
    wanted.status = "running";
    wanted.spec = wanted.space = wanted.summary = "{}";
    bool resumed = true;
    run_ = store_->OpenRun(wanted, resumed).value();
    EXPECT_FALSE(resumed);
  }
  TemporaryDirectory folder_;
  std::unique_ptr<Store> store_;
  RunRecord run_;
};

TEST_F(ResumeTest, TheSameKeyGoesOnWhereItStopped) {
  for (int i = 0; i < 20; ++i) judge_.candidates[std::to_string(i)].ns = 1e8 + 1e6 * ((i * 7) % 20);
  stop_after_ = 8;
  const TuneResult first = Tune(Schedule(20), store_.get(), run_);
  ASSERT_EQ(first.trials.size(), 8u);
  ASSERT_EQ(store_->Trials(run_.id)->size(), 8u) << "each was written when it ended";

  RunRecord again = run_;
  again.id = "second";
  bool resumed = false;
  const RunRecord found = store_->OpenRun(again, resumed).value();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(found.id, "first");
  stop_after_.reset();
  stop_ = false;
  judge_.examined.clear();
  const TuneResult second = Tune(Schedule(20), store_.get(), found);
  ASSERT_EQ(second.trials.size(), 20u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(second.trials[i].configuration, first.trials[i].configuration);
  std::set<std::string> ids;
  for (const Trial& trial : second.trials) ids.insert(ToString(trial.configuration.values[0]));
  EXPECT_EQ(ids.size(), 20u) << "nothing twice, nothing left out";
  EXPECT_EQ(judge_.examined.size(), 12u + 3u) << "only the new ones, and the finalists";
  EXPECT_EQ(second.trials.back().number, 20);
  EXPECT_EQ(Winner(second), "0");
}

TEST_F(ResumeTest, ARunOfTheSameTaskTeachesThisOneWhereToBegin) {
  for (int i = 0; i < 60; ++i) judge_.candidates[std::to_string(i)].ns = 1e8 + 1e6 * ((i * 37 + 23) % 60);
  const Schedule schedule(60);
  const auto record = [&](const char* id) {
    RunRecord run = run_;
    run.id = run.key = id;
    run.spec = DumpJson(ToJson(schedule.spec()));
    run.space = DumpJson(ToJson(schedule.space()));
    bool resumed = false;
    return store_->OpenRun(run, resumed).value();
  };
  (void)Tune(schedule, store_.get(), record("teacher"));
  request_.strategy = "auto";
  request_.budget.trials = 4;
  const auto second = [&](const char* id) {
    return ToString(Tune(schedule, store_.get(), record(id)).trials.at(1).configuration.values[0]);
  };
  EXPECT_NE(second("untaught"), "1");
  request_.transfer = true;
  EXPECT_EQ(second("pupil"), "1") << "the teacher's best";
}

TEST_F(ResumeTest, KnownTrialsCountAgainstTheBudget) {
  request_.budget.trials = 5;
  (void)Tune(Schedule(20), store_.get(), run_);
  judge_.examined.clear();
  const TuneResult again = Tune(Schedule(20), store_.get(), run_);
  EXPECT_EQ(again.trials.size(), 5u);
  EXPECT_EQ(again.stop_reason, "trial budget spent");
  EXPECT_EQ(judge_.examined.size(), 3u) << "the finalists are judged again, whoever they are";
}

TEST_F(TuneSessionTest, TheWinnerIsPairedWithThePlainKernelAndTheVendors) {
  judge_.other.ns = 1e8;
  judge_.candidates["naive"].ns = 3e8;
  request_.vendors = {"cuBLAS"};
  const TuneResult result = Tune(Schedule(3, true));
  ASSERT_EQ(result.baselines.size(), 2u);
  EXPECT_EQ(result.baselines[0].name, "naive");
  EXPECT_EQ(*result.baselines[0].ObjectiveNs(), 3e8);
  EXPECT_EQ(result.baselines[0].comparison->ratio, 3);
  EXPECT_EQ(result.baselines[1].name, "cuBLAS");
  ASSERT_EQ(judge_.compared.size(), 2u);
  EXPECT_EQ(judge_.compared[0], std::pair(std::string("naive"), Winner(result)));
  EXPECT_EQ(judge_.compared[1].second, Winner(result));
}

TEST_F(TuneSessionTest, ThePlainKernelIsLeftOut) {
  judge_.other.ns = 1e8;
  request_.plain = false;
  const TuneResult result = Tune(Schedule(3, true));
  EXPECT_TRUE(result.winner);
  EXPECT_TRUE(result.baselines.empty());
  EXPECT_TRUE(judge_.compared.empty());
}

TEST_F(TuneSessionTest, AComparisonThatFailsDoesNotCostTheResult) {
  judge_.other.ns = 1e8;
  judge_.comparing_fails = true;
  request_.vendors = {"cuBLAS"};
  const auto result = TryTune(Schedule(3, true));
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_TRUE(result->winner);
  ASSERT_EQ(result->baselines.size(), 2u);
  for (const Baseline& baseline : result->baselines) {
    EXPECT_FALSE(baseline.comparison);
    EXPECT_THAT(baseline.note, HasSubstr("signal 9")) << baseline.name;
  }
}

TEST_F(TuneSessionTest, APlainKernelThatFailsIsNotComparedWith) {
  judge_.other.ns = 1e8;
  judge_.candidates["naive"].verdict = VerdictKind::kTimeout;
  const TuneResult result = Tune(Schedule(3, true));
  ASSERT_EQ(result.baselines.size(), 1u);
  EXPECT_FALSE(result.baselines[0].ObjectiveNs());
  EXPECT_EQ(result.baselines[0].note, "was caught");
  EXPECT_TRUE(judge_.compared.empty());
}

TEST_F(TuneSessionTest, AUsersKernelThatDoesNotFinishEndsTheRun) {
  judge_.candidates["naive"].verdict = VerdictKind::kTimeout;
  Schedule schedule(3, true);
  schedule.IsOfAUser();
  const auto result = TryTune(schedule);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().ToString(),
              testing::AllOf(HasSubstr("the kernel as given does not finish: was caught"), HasSubstr("smaller")));
  EXPECT_EQ(judge_.examined, std::vector<std::string>{"naive"});
}

/// Takes real time, and says how many were at work at once.
class SlowJudge : public KnowingJudge {
 public:
  SlowJudge(ManualClock& clock, std::atomic<int>& working, std::atomic<int>& most)
      : KnowingJudge(clock), working_(working), most_(most) {}
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override {
    most_ = std::max<int>(most_, ++working_);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    auto answer = KnowingJudge::Examine(candidate, order);
    if (answer && answer->measurement) answer->measurement->median_ns = 1e6 + std::stod(candidate.module.ptx);
    --working_;
    return answer;
  }

 private:
  std::atomic<int>& working_;
  std::atomic<int>& most_;
};

TEST_F(TuneSessionTest, SeveralDevicesJudgeInParallelAndShareWhatTheyLearn) {
  std::atomic<int> working = 0;
  std::atomic<int> most = 0;
  SlowJudge first(clock_, working, most);
  SlowJudge second(clock_, working, most);
  judges_ = {&first, &second};
  compiler_.twins = {{"5", "0"}, {"17", "3"}};
  request_.budget.trials = 30;
  const TuneResult result = Tune(Schedule(40));
  EXPECT_EQ(result.trials.size(), 30u) << "the budget counts what is still being judged";
  EXPECT_EQ(most, 2);
  EXPECT_GE(second.examined.size(), 8u);
  std::set<std::string> ids;
  for (size_t i = 0; i < result.trials.size(); ++i) {
    EXPECT_EQ(result.trials[i].number, static_cast<int64_t>(i) + 1);
    EXPECT_TRUE(ids.insert(ToString(result.trials[i].configuration.values[0])).second) << "nothing twice";
  }
  EXPECT_EQ(first.begun.size(), 2u);
  EXPECT_EQ(second.begun.size(), 1u) << "finalists are judged on one device";
  EXPECT_EQ(Winner(result), "0");
}

TEST_F(TuneSessionTest, ADeviceThatCannotBeginEndsTheRun) {
  class Broken : public KnowingJudge {
   public:
    using KnowingJudge::KnowingJudge;
    Status Begin(const JudgeTask&) override { return Fail(ErrorCode::kUnavailable, "no memory left"); }
  } broken(clock_);
  judges_ = {&judge_, &broken};
  EXPECT_THAT(TryTune(Schedule(5)).error().ToString(), HasSubstr("no memory left"));
}

TEST_F(TuneSessionTest, OfSeveralObjectivesTheFrontIsKept) {
  // The faster, the more shared memory: all are on the front but the odd ones, which waste some.
  Schedule schedule(20);
  for (int i = 0; i < 20; ++i) {
    judge_.candidates[std::to_string(i)].ns = 1e8 + 1e6 * i;
    schedule.shared[std::to_string(i)] = i % 2 ? 48000 : 40000 - 1000 * i;
  }
  request_.objectives = {Objective::kTime, Objective::kMemory};
  const TuneResult result = Tune(schedule);
  ASSERT_EQ(result.trials.size(), 20u);
  std::vector<std::string> front;
  for (size_t i : result.front) front.push_back(ToString(result.trials[i].configuration.values[0]));
  EXPECT_EQ(front, (std::vector<std::string>{"0", "2", "4", "6", "8", "10", "12", "14", "16", "18"}));
  EXPECT_EQ(Winner(result), "0") << "the first objective decides";
  for (const auto& incumbent : judge_.incumbents) EXPECT_FALSE(incumbent) << "nobody races on time alone";
  request_.objectives = {Objective::kMemory};
  const TuneResult lean = Tune(schedule);
  EXPECT_EQ(Winner(lean), "18");
  EXPECT_TRUE(lean.front.empty());
}

TEST_F(TuneSessionTest, AnImpossibleRequestIsAnError) {
  request_.strategy = "clairvoyant";
  const auto unknown = TryTune(Schedule(3));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace atunner
