// The loop with a judge that knows the answers: what is remembered, what the winner is compared
// with, several devices.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "atunner/model/json/json.h"
#include "atunner/tune/tune_session_fixture_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;

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
  stop_ = std::stop_source();
  judge_.examined.clear();
  const TuneResult second = Tune(Schedule(20), store_.get(), found);
  ASSERT_EQ(second.trials.size(), 20u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(second.trials[i].configuration(), first.trials[i].configuration());
  std::set<std::string> ids;
  for (const Trial& trial : second.trials) ids.insert(ToString(trial.configuration().values[0]));
  EXPECT_EQ(ids.size(), 20u) << "nothing twice, nothing left out";
  EXPECT_EQ(judge_.examined.size(), 12u + 3u) << "only the new ones, and the finalists";
  EXPECT_EQ(second.trials.back().number, 20);
  EXPECT_EQ(Winner(second), "0");
}

TEST_F(ResumeTest, ARunOfTheSameTaskTeachesThisOneWhereToBegin) {
  for (int i = 0; i < 60; ++i)
    judge_.candidates[std::to_string(i)].ns = 1e8 + 1e6 * ((i * 37 + 23) % 60);
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
    return ToString(
        Tune(schedule, store_.get(), record(id)).trials.at(1).configuration().values[0]);
  };
  EXPECT_NE(second("untaught"), "1");
  request_.transfer = true;
  EXPECT_EQ(second("pupil"), "1") << "the teacher's best";
}

/// The space of a stored run; the kernel's text is its configuration.
class StoredSchedule : public ScheduleTemplate {
 public:
  explicit StoredSchedule(const RunRecord& run)
      : spec_(FromJson<KernelSpec>(ParseJson(run.spec).value()).value()),
        space_(FromJson<ParameterSpace>(ParseJson(run.space).value()).value()) {}
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return first; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    RenderedKernel kernel;
    kernel.source.text = space_.Describe(configuration);
    LaunchStep step;
    step.entry = "k";
    kernel.plan.steps = {step};
    return kernel;
  }
  std::vector<Dims> CheckDims(const Configuration&) const override { return {spec_.dims}; }

  Configuration first;

 private:
  KernelSpec spec_;
  ParameterSpace space_;
};

TEST_F(ResumeTest, ARunOfSchema1GoesOn) {
  const Path file = folder_.path() / "schema1.db";
  std::filesystem::copy_file(Path(ATUNNER_SOURCE_DIR) / "tests/data/schema1/store.db", file);
  const auto store = Store::Open(file).value();
  RunRecord run = store->FindRun("20261127-1251-softmax").value();
  const std::vector<Trial> known = store->Trials(run.id).value();
  ASSERT_EQ(known.size(), 6u);
  StoredSchedule schedule(run);
  schedule.first = known[0].configuration();
  bool resumed = false;
  run = store->OpenRun(run, resumed).value();
  EXPECT_TRUE(resumed);
  request_.budget.trials = 10;
  request_.schedule = &schedule;
  TuneSession session(request_, compiler_, judges_, clock_);
  std::vector<std::string> judged;  // when the search ends
  const auto result = session.Run(store.get(), run, {}, [&](const TuneEvent& event) {
    if (event.kind == TuneEvent::Kind::kTrial) judged = judge_.examined;
  });
  ASSERT_TRUE(result) << result.error().ToString();
  ASSERT_EQ(result->trials.size(), 10u);
  std::set<Digest> ids;
  for (const Trial& trial : result->trials) ids.insert(trial.candidate.id);
  EXPECT_EQ(ids.size(), 10u) << "no configuration twice";
  EXPECT_EQ(judged.size(), 4u) << "known ones are not judged again";
  for (const Trial& trial : known)
    EXPECT_FALSE(std::ranges::count(judged, trial.candidate.Describe(schedule.space())));
  EXPECT_EQ(store->Trials(run.id)->size(), 10u);
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
              testing::AllOf(HasSubstr("the kernel as given does not finish: was caught"),
                             HasSubstr("smaller")));
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
    if (answer && answer->measurement)
      answer->measurement->median_ns = 1e6 + std::stod(candidate.module.ptx);
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
    EXPECT_TRUE(ids.insert(ToString(result.trials[i].configuration().values[0])).second)
        << "nothing twice";
  }
  EXPECT_EQ(first.begun.size(), 2u);
  EXPECT_EQ(second.begun.size(), 1u) << "finalists are judged on one device";
  EXPECT_EQ(Winner(result), "0");
}

TEST_F(TuneSessionTest, ADeviceThatCannotBeginEndsTheRun) {
  class Broken : public KnowingJudge {
   public:
    using KnowingJudge::KnowingJudge;
    Status Begin(const JudgeTask&) override {
      return Fail(ErrorCode::kUnavailable, "no memory left");
    }
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
  for (size_t i : result.front)
    front.push_back(ToString(result.trials[i].configuration().values[0]));
  EXPECT_EQ(front,
            (std::vector<std::string>{"0", "2", "4", "6", "8", "10", "12", "14", "16", "18"}));
  EXPECT_EQ(Winner(result), "0") << "the first objective decides";
  for (const auto& incumbent : judge_.incumbents)
    EXPECT_FALSE(incumbent) << "nobody races on time alone";
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
