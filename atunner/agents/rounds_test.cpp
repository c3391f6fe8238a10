// Whole flows in this process, with fakes for compiler, judge and device.
#include "atunner/agents/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "atunner/agents/implement.h"
#include "atunner/codegen/template/family.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/jobs/testing/fake_services_test.h"
#include "atunner/workflow/memory_checkpoints.h"

namespace atunner::agents {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Kind = workflow::Outcome::Kind;

class RoundsTest : public testing::Test {
 protected:
  RoundsRequest Request(int rounds = 2) {
    RoundsRequest request{.rounds = rounds, .ideas = 3, .implementations = 2, .keep = 0.5};
    request.optimize.task = {.operator_name = "softmax", .shapes = {{64, 512}}};
    request.optimize.tuning.target.gpu = "A100";
    request.optimize.tuning.command = "the command";
    return request;
  }
  RoundsContext Doors(std::stop_token stop = {}, workflow::FlowListener listener = nullptr) {
    return {fakes_.services, flows_, events_, std::move(listener), std::move(stop)};
  }
  std::vector<Trial> Trials(const std::string& run) {
    return fakes_.stores.Open().value()->Trials(run).value();
  }

  jobs::FakeServices fakes_;
  workflow::MemoryCheckpoints flows_;
  jobs::EventSink events_ = [](const jobs::Event&) {};
};

TEST_F(RoundsTest, RunsRoundsAndKeepsLineage) {
  const auto result = OptimizeInRounds(Request(), Doors());
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->kind, Kind::kFinished);
  EXPECT_TRUE(result->found());
  EXPECT_EQ(result->state.rounds.size(), 2u);
  EXPECT_EQ(result->state.stop, "2 rounds are done");
  const auto trials = Trials(result->state.flow);
  EXPECT_GE(trials.size(), 1u + 2 * 3);
  EXPECT_LE(trials.size(), 1u + 2 * 3 * 2);
  std::set<std::string> ids;
  for (const Trial& trial : trials) {
    EXPECT_TRUE(ids.insert(trial.candidate.id.ToHex()).second);
    EXPECT_THAT(trial.candidate.provenance.reason, Not(IsEmpty()));
    if (trial.number > 1) EXPECT_TRUE(trial.candidate.provenance.parent);
  }
  const Version* best = Fastest(result->state.versions);
  ASSERT_NE(best, nullptr);
  EXPECT_GT(LineageOf(result->state.ideas, best->idea).size(), 1u);
  EXPECT_TRUE(Exists(result->state.result["report"].get<std::string>()));
  EXPECT_EQ(flows_.FindFlow(result->state.flow).value()->status, "finished");
}

TEST_F(RoundsTest, AnEqualRequestThatHasFinishedJudgesNothing) {
  const auto first = OptimizeInRounds(Request(), Doors());
  ASSERT_TRUE(first);
  const size_t trials = Trials(first->state.flow).size();
  const auto second = OptimizeInRounds(Request(), Doors());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->state.flow, first->state.flow);
  EXPECT_EQ(Trials(first->state.flow).size(), trials);
  EXPECT_TRUE(second->found());
}

TEST_F(RoundsTest, GoesOnAfterACancelWithoutJudgingAgain) {
  for (const char* node : {"baseline", "propose", "implement", "evaluate", "decide"}) {
    RoundsRequest request = Request();
    request.optimize.tuning.fresh = true;
    std::stop_source stop;
    const auto listener = [&](const workflow::FlowEvent& event) {
      if (event.kind == workflow::FlowEvent::Kind::kTaskFinished && event.node == node)
        stop.request_stop();
    };
    const auto cancelled = OptimizeInRounds(request, Doors(stop.get_token(), listener));
    ASSERT_TRUE(cancelled) << cancelled.error().ToString();
    EXPECT_EQ(cancelled->kind, Kind::kCancelled) << node;
    const auto before = Trials(cancelled->state.flow);
    const auto resumed = ResumeRounds(cancelled->state.flow, "go", Doors());
    ASSERT_TRUE(resumed) << resumed.error().ToString();
    EXPECT_EQ(resumed->kind, Kind::kFinished) << node;
    const auto after = Trials(cancelled->state.flow);
    ASSERT_GE(after.size(), before.size());
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(after[i].candidate.id, before[i].candidate.id) << node;
  }
}

TEST_F(RoundsTest, ARoundThatWasInterruptedIsJudgedCompletely) {
  RoundsRequest request = Request(1);
  const auto whole = OptimizeInRounds(request, Doors());
  ASSERT_TRUE(whole);
  const auto ids = [&](const std::string& run) {
    std::set<std::string> all;
    for (const Trial& trial : Trials(run)) all.insert(trial.candidate.id.ToHex());
    return all;
  };
  const auto expected = ids(whole->state.flow);
  request.optimize.tuning.fresh = true;
  std::stop_source stop;
  int trials = 0;
  events_ = [&](const jobs::Event& event) {
    if (std::holds_alternative<jobs::TrialEvent>(event) && ++trials == 3) stop.request_stop();
  };
  const auto cancelled = OptimizeInRounds(request, Doors(stop.get_token()));
  ASSERT_TRUE(cancelled) << cancelled.error().ToString();
  EXPECT_EQ(cancelled->kind, Kind::kCancelled);
  EXPECT_LT(ids(cancelled->state.flow).size(), expected.size());
  const auto resumed = ResumeRounds(cancelled->state.flow, "go", Doors());
  ASSERT_TRUE(resumed) << resumed.error().ToString();
  EXPECT_EQ(ids(resumed->state.flow), expected);
  EXPECT_EQ(resumed->state.rounds[0].kernels, whole->state.rounds[0].kernels);
}

TEST_F(RoundsTest, WaitsForAPerson) {
  RoundsRequest request = Request(1);
  request.pause_before = {"finish"};
  const auto waiting = OptimizeInRounds(request, Doors());
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->kind, Kind::kWaiting);
  ASSERT_EQ(waiting->questions.size(), 1u);
  EXPECT_EQ(waiting->questions[0].node, "finish");
  const auto resumed = ResumeRounds("last", "go", Doors());
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->kind, Kind::kFinished);
}

TEST_F(RoundsTest, AForkGoesOnWithMoreRounds) {
  const auto first = OptimizeInRounds(Request(1), Doors());
  ASSERT_TRUE(first);
  const auto checkpoints = flows_.List(first->state.flow).value();
  const auto decide = std::ranges::find_if(checkpoints, [](const workflow::Checkpoint& one) {
    return !one.next.empty() && one.next[0].node == "decide";
  });
  ASSERT_NE(decide, checkpoints.end());
  const auto fork = ForkRounds(flows_, first->state.flow, decide->number, {{"rounds", 2}});
  ASSERT_TRUE(fork) << fork.error().ToString();
  const auto result = ResumeRounds(*fork, "go", Doors());
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->state.rounds.size(), 2u);
  EXPECT_EQ(StateOf(flows_, first->state.flow).value().rounds.size(), 1u);
  EXPECT_FALSE(ForkRounds(flows_, first->state.flow, 999, nullptr));
  EXPECT_FALSE(ForkRounds(flows_, first->state.flow, 1, {{"rounds", -1}}));
}

TEST_F(RoundsTest, StopsWhenTheBudgetIsSpent) {
  RoundsRequest request = Request(5);
  request.optimize.tuning.budget = {.trials = 4, .seconds = {}};
  const auto result = OptimizeInRounds(request, Doors());
  ASSERT_TRUE(result);
  EXPECT_EQ(result->state.stop, "trial budget spent");
  EXPECT_EQ(Trials(result->state.flow).size(), 4u);
}

TEST_F(RoundsTest, WrongRequestsAreRefused) {
  EXPECT_THAT(OptimizeInRounds(Request(0), Doors()).error().what, HasSubstr("rounds"));
  EXPECT_EQ(ResumeRounds("nowhere", "go", Doors()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(StateOf(flows_, "nowhere").error().code, ErrorCode::kNotFound);
}

// --- implementations

TEST(Implement, ProposesTheNearestKernelThatFulfilsTheIdea) {
  const DeviceProfile profile = FindProfile("A100").value();
  const KernelSpec spec =
      jobs::SpecsOf({.operator_name = "softmax", .shapes = {{1024, 4096}}}).value().front();
  const auto schedule = MakeTemplate(spec, profile).value();
  const Candidate parent = MakeCandidate(schedule->space(), schedule->Default(), {"default", ""});
  Idea idea;
  idea.id = "r1.1";
  idea.proposer = "rule:x";
  const Parameter* number = nullptr;
  for (const Parameter& each : schedule->space().parameters) {
    if (each.values.size() > 1 && std::holds_alternative<int64_t>(each.values[0])) number = &each;
  }
  ASSERT_NE(number, nullptr);
  const std::string now = ToString(Get(schedule->space(), schedule->Default(), number->name));
  idea.conditions = {number->name + " != " + now};
  auto source = RestrictedSource::Make(*schedule, profile, idea, parent, {}).value();
  const auto candidates = source->Ask(3);
  ASSERT_THAT(candidates, Not(IsEmpty()));
  for (const Candidate& candidate : candidates) {
    EXPECT_NE(ToString(Get(schedule->space(), *candidate.configuration(), number->name)), now);
    EXPECT_TRUE(schedule->space().Allows(*candidate.configuration(), spec.dims).value());
    EXPECT_EQ(candidate.provenance.parent, parent.id);
    EXPECT_EQ(candidate.provenance.proposer, "rule:x");
  }
  const std::set<std::string> known = {candidates[0].id.ToHex()};
  auto again = RestrictedSource::Make(*schedule, profile, idea, parent, known).value();
  const auto others = again->Ask(1);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_NE(others[0].id, candidates[0].id);
}

TEST(Implement, ConditionsThatLeaveNothingAreErrors) {
  const DeviceProfile profile = FindProfile("A100").value();
  const KernelSpec spec =
      jobs::SpecsOf({.operator_name = "softmax", .shapes = {{8, 64}}}).value().front();
  const auto schedule = MakeTemplate(spec, profile).value();
  const Candidate parent = MakeCandidate(schedule->space(), schedule->Default(), {"default", ""});
  Idea idea;
  for (const char* condition : {"1 == 2", "no_such_name > 3", "a >"}) {
    idea.conditions = {condition};
    EXPECT_FALSE(RestrictedSource::Make(*schedule, profile, idea, parent, {})) << condition;
  }
  idea.conditions = {};
  Candidate whole;
  whole.what = SourceCandidate{};
  EXPECT_FALSE(RestrictedSource::Make(*schedule, profile, idea, whole, {}));
}

}  // namespace
}  // namespace atunner::agents
