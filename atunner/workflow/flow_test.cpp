#include "atunner/workflow/flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "atunner/workflow/memory_checkpoints.h"

namespace atunner::workflow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A node that appends its name, and its input, to the channel "log".
NodeFunction Log(const std::string& name) {
  return [name](const NodeContext& context) -> Result<NodeResult> {
    return NodeResult{{{"log", name + (context.input ? context.input->dump() : "")}}};
  };
}

/// Nodes of the given names, each of which logs.
GraphBuilder Logging(const std::vector<std::string>& names) {
  GraphBuilder builder("test");
  builder.Add(Appended("log"));
  for (const std::string& name : names) builder.Node(name, Log(name));
  return builder;
}

std::string LogOf(const Result<Outcome>& outcome) {
  if (!outcome) return outcome.error().ToString();
  std::string text;
  for (const Json& line : (*outcome->state)["log"])
    text += (text.empty() ? "" : " ") + line.get<std::string>();
  return text;
}

std::string RunGraph(GraphBuilder& builder, FlowOptions options = {}) {
  const auto graph = builder.Build();
  if (!graph) return graph.error().ToString();
  return LogOf(Flow(*graph, "f", std::move(options)).Start(nullptr));
}

// --- graphs

TEST(Graph, FaultsAreNamedTogether) {
  GraphBuilder builder = Logging({"a", "a", "lonely"});
  builder.Edge(kStart, "a").Edge("a", "b");
  const std::string text = RunGraph(builder);
  EXPECT_THAT(text, HasSubstr("'a' is declared twice"));
  EXPECT_THAT(text, HasSubstr("no node 'b'"));
}

TEST(Graph, NodesMustBeReached) {
  GraphBuilder builder = Logging({"a", "lonely"});
  builder.Edge(kStart, "a");
  EXPECT_THAT(RunGraph(builder), HasSubstr("no edge leads to the node 'lonely'"));
}

TEST(Graph, NeedsAnEntry) {
  GraphBuilder builder = Logging({"a"});
  EXPECT_THAT(RunGraph(builder), HasSubstr("no edge leaves the start"));
}

// --- order

TEST(Flow, Chain) {
  GraphBuilder builder = Logging({"a", "b", "c"});
  builder.Edge(kStart, "a").Edge("a", "b").Edge("b", "c").Edge("c", kEnd);
  EXPECT_EQ(RunGraph(builder), "a b c");
}

TEST(Flow, StaticFanOutRunsTheNextNodeOnce) {
  GraphBuilder builder = Logging({"a", "b", "c", "d"});
  builder.Edge(kStart, "a").Edge("a", "b").Edge("a", "c").Edge("b", "d").Edge("c", "d");
  EXPECT_EQ(RunGraph(builder), "a b c d");
}

TEST(Flow, DynamicFanOutRunsOneTaskForEachInput) {
  GraphBuilder builder = Logging({"a", "b", "c"});
  builder.Edge(kStart, "a").Edge("b", "c");
  builder.Branch(
      "a", [](const State&) { return std::vector<Target>{{"b", Json(1)}, {"b", Json(2)}}; }, {"b"});
  EXPECT_EQ(RunGraph(builder), "a b1 b2 c");
}

TEST(Flow, JoinWaitsForBranchesOfUnequalLength) {
  GraphBuilder builder = Logging({"a", "b", "b2", "c", "d"});
  builder.Edge(kStart, "a").Edge("a", "b").Edge("a", "c").Edge("b", "b2");
  builder.Join({"b2", "c"}, "d");
  EXPECT_EQ(RunGraph(builder), "a b c b2 d");
}

TEST(Flow, DeferredNodeRunsLast) {
  GraphBuilder builder = Logging({"a", "b", "b2", "c"});
  builder.Node("d", Log("d"), {.deferred = true});
  builder.Edge(kStart, "a").Edge("a", "b").Edge("a", "c").Edge("b", "b2");
  builder.Edge("b2", "d").Edge("c", "d");
  EXPECT_EQ(RunGraph(builder), "a b c b2 d");
}

TEST(Flow, RouterSeesTheStateAfterTheStep) {
  GraphBuilder builder = Logging({"a", "b"});
  builder.Edge(kStart, "a");
  builder.Branch(
      "a",
      [](const State& state) { return std::vector<Target>{{state["log"].size() < 3 ? "a" : "b"}}; },
      {"a", "b"});
  EXPECT_EQ(RunGraph(builder), "a a a b");
}

TEST(Flow, RouterToAnUnknownNodeIsAnError) {
  GraphBuilder builder = Logging({"a"});
  builder.Edge(kStart, "a");
  builder.Branch("a", [](const State&) { return std::vector<Target>{{"nowhere"}}; }, {});
  EXPECT_THAT(RunGraph(builder), HasSubstr("node 'a': it leads to 'nowhere'"));
}

TEST(Flow, NodeGoesWhereItWants) {
  GraphBuilder builder = Logging({"b", "c"});
  builder.Node("a", [](const NodeContext&) -> Result<NodeResult> {
    return NodeResult{{{"log", "a"}}, std::vector<Target>{{"c"}}};
  });
  builder.Edge(kStart, "a").Edge("a", "b").Edge("b", "c");
  EXPECT_EQ(RunGraph(builder), "a c");
}

TEST(Flow, RecursionLimit) {
  GraphBuilder builder = Logging({"a"});
  builder.Edge(kStart, "a").Edge("a", "a");
  EXPECT_THAT(RunGraph(builder, {.most_steps = 7}), HasSubstr("not ended after 7 super-steps"));
}

// --- state

TEST(Flow, TwoWritersOfALastValueAreAnError) {
  GraphBuilder builder("test");
  builder.Add(LastValue("x"));
  const auto write = [](const NodeContext&) -> Result<NodeResult> {
    return NodeResult{{{"x", 1}}};
  };
  builder.Node("a", write).Node("b", write).Edge(kStart, "a").Edge(kStart, "b");
  EXPECT_THAT(RunGraph(builder), HasSubstr("two updates of one super-step write the channel 'x'"));
}

TEST(Flow, ReducerJoinsWriters) {
  GraphBuilder builder("test");
  builder.Add(Reduced("sum", 0, [](Json value, const Json& update) {
    return Json(value.get<int>() + update.get<int>());
  }));
  const auto write = [](const NodeContext&) -> Result<NodeResult> {
    return NodeResult{{{"sum", 2}}};
  };
  builder.Node("a", write).Node("b", write).Edge(kStart, "a").Edge(kStart, "b");
  const Graph graph = builder.Build().value();
  const auto outcome = Flow(graph, "f").Start({{"sum", 10}});
  EXPECT_EQ((*outcome->state)["sum"], 14);
}

TEST(Flow, UnknownChannelsAreErrors) {
  GraphBuilder builder = Logging({"a"});
  builder.Node("b",
               [](const NodeContext&) -> Result<NodeResult> { return NodeResult{{{"typo", 1}}}; });
  builder.Edge(kStart, "a").Edge("a", "b");
  const Graph graph = builder.Build().value();
  EXPECT_THAT(LogOf(Flow(graph, "f").Start(nullptr)), HasSubstr("no channel 'typo'"));
  EXPECT_THAT(LogOf(Flow(graph, "f").Start({{"other", 1}})), HasSubstr("no channel 'other'"));
}

// --- failures

/// Fails until it was called `good` times.
NodeFunction Flaky(int& calls, int good) {
  return [&calls, good](const NodeContext&) -> Result<NodeResult> {
    if (++calls < good) return Fail(ErrorCode::kUnavailable, "busy");
    return NodeResult{{{"log", "flaky"}}};
  };
}

TEST(Flow, RetriesWithBackOff) {
  int calls = 0;
  ManualClock clock;
  GraphBuilder builder = Logging({"a"});
  builder.Node("b", Flaky(calls, 4), {.retry = {.attempts = 5, .first_seconds = 1}});
  builder.Edge(kStart, "a").Edge("a", "b");
  EXPECT_EQ(RunGraph(builder, {.clock = &clock}), "a flaky");
  EXPECT_EQ(calls, 4);
  EXPECT_NEAR(clock.Now(), 1 + 2 + 4, 0.1);
}

TEST(Flow, WaitsAreLimited) {
  const RetryPolicy policy{.attempts = 20, .first_seconds = 0.5, .factor = 2, .most_seconds = 10};
  EXPECT_EQ(policy.SecondsBefore(2), 0.5);
  EXPECT_EQ(policy.SecondsBefore(3), 1);
  EXPECT_EQ(policy.SecondsBefore(15), 10);
}

TEST(Flow, SomeErrorsAreNotWorthARetry) {
  int calls = 0;
  GraphBuilder builder = Logging({});
  RetryPolicy policy{.attempts = 5};
  policy.retry_on = [](const Error& error) { return error.code == ErrorCode::kTimeout; };
  builder.Node("b", Flaky(calls, 4), {.retry = policy}).Edge(kStart, "b");
  EXPECT_THAT(RunGraph(builder), HasSubstr("node 'b': busy"));
  EXPECT_EQ(calls, 1);
}

TEST(Flow, ExceptionsBecomeErrors) {
  GraphBuilder builder = Logging({});
  builder.Node("b", [](const NodeContext& context) -> Result<NodeResult> {
    return NodeResult{{{"log", context.state["log"].at("no object")}}};
  });
  builder.Edge(kStart, "b");
  EXPECT_THAT(RunGraph(builder), HasSubstr("node 'b': an exception"));
}

TEST(Flow, FinishedSiblingsOfAFailedTaskDoNotRunAgain) {
  int calls = 0;
  int sibling_calls = 0;
  GraphBuilder builder = Logging({"end"});
  builder.Node("flaky", Flaky(calls, 2));
  builder.Node("sibling", Flaky(sibling_calls, 1));
  builder.Edge(kStart, "flaky").Edge(kStart, "sibling").Edge("flaky", "end");
  const Graph graph = builder.Build().value();
  MemoryCheckpoints checkpoints;
  Flow flow(graph, "f", {.checkpoints = &checkpoints});
  EXPECT_THAT(LogOf(flow.Start(nullptr)), HasSubstr("busy"));
  EXPECT_EQ(checkpoints.FindFlow("f").value()->status, "failed");
  EXPECT_EQ(LogOf(flow.Resume()), "flaky flaky end");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(sibling_calls, 1);
  EXPECT_EQ(checkpoints.FindFlow("f").value()->status, "finished");
}

TEST(Flow, ANodeIsToldWhenItsTimeIsOver) {
  GraphBuilder builder = Logging({});
  std::atomic<bool> told = false;
  builder.Node("slow",
               [&](const NodeContext& context) -> Result<NodeResult> {
                 while (!context.stop.stop_requested())
                   std::this_thread::sleep_for(std::chrono::milliseconds(1));
                 told = true;
                 return NodeResult{{{"log", "late"}}};
               },
               {.timeout_seconds = 0.02});
  builder.Edge(kStart, "slow");
  {
    const Graph graph = builder.Build().value();
    EXPECT_THAT(LogOf(Flow(graph, "f").Start(nullptr)), HasSubstr("no result after 0.02 s"));
  }
  EXPECT_TRUE(told);
}

TEST(Flow, ATimeOutIsRetried) {
  GraphBuilder builder = Logging({});
  builder.Node("slow",
               [](const NodeContext& context) -> Result<NodeResult> {
                 while (context.attempt == 1 && !context.stop.stop_requested())
                   std::this_thread::sleep_for(std::chrono::milliseconds(1));
                 return NodeResult{{{"log", "attempt " + std::to_string(context.attempt)}}};
               },
               {.retry = {.attempts = 2, .first_seconds = 0.001}, .timeout_seconds = 0.2});
  builder.Edge(kStart, "slow");
  EXPECT_EQ(RunGraph(builder), "attempt 2");
}

// --- threads

TEST(Flow, TasksOfAStepRunInParallelAndJoinInOrder) {
  GraphBuilder builder = Logging({"z"});
  std::atomic<int> inside = 0;
  const auto meet = [&inside](const NodeContext& context) -> Result<NodeResult> {
    ++inside;
    while (inside < 3) std::this_thread::yield();  // ends only if all three run at the same time
    return NodeResult{{{"log", context.input->dump()}}};
  };
  builder.Node("meet", meet).Node("a", Log("a"));
  builder.Edge(kStart, "a").Edge("meet", "z");
  builder.Branch("a",
                 [](const State&) {
                   return std::vector<Target>{
                       {"meet", Json(1)}, {"meet", Json(2)}, {"meet", Json(3)}};
                 },
                 {"meet"});
  EXPECT_EQ(RunGraph(builder, {.threads = 3}), "a 1 2 3 z");
}

// --- stopping

TEST(Flow, CancelKeepsFinishedTasks) {
  std::stop_source stop;
  int calls = 0;
  GraphBuilder builder = Logging({"c"});
  builder.Node("a", Flaky(calls, 1));
  builder.Node("b", [&](const NodeContext& context) -> Result<NodeResult> {
    if (!stop.stop_requested()) {
      stop.request_stop();
      EXPECT_TRUE(context.stop.stop_requested());
      return Fail(ErrorCode::kCancelled, "stopped");
    }
    return NodeResult{{{"log", "b"}}};
  });
  builder.Edge(kStart, "a").Edge(kStart, "b").Edge("b", "c");
  const Graph graph = builder.Build().value();
  MemoryCheckpoints checkpoints;
  const auto outcome = Flow(graph, "f", {.checkpoints = &checkpoints, .stop = stop.get_token()})
                           .Start(nullptr);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Outcome::Kind::kCancelled);
  EXPECT_EQ(checkpoints.FindFlow("f").value()->status, "cancelled");
  EXPECT_EQ(LogOf(Flow(graph, "f", {.checkpoints = &checkpoints}).Resume()), "flaky b c");
  EXPECT_EQ(calls, 1);
}

TEST(Flow, DrainLetsRunningNodesEnd) {
  std::stop_source drain;
  GraphBuilder builder = Logging({"b"});
  builder.Node("a", [&](const NodeContext& context) -> Result<NodeResult> {
    drain.request_stop();
    EXPECT_FALSE(context.stop.stop_requested());
    return NodeResult{{{"log", "a"}}};
  });
  builder.Edge(kStart, "a").Edge("a", "b");
  const Graph graph = builder.Build().value();
  const auto outcome = Flow(graph, "f", {.drain = drain.get_token()}).Start(nullptr);
  EXPECT_EQ(outcome->kind, Outcome::Kind::kCancelled);
  EXPECT_EQ(LogOf(outcome), "a");
}

TEST(Flow, AnotherProcessCancels) {
  MemoryCheckpoints checkpoints;
  GraphBuilder builder = Logging({"b"});
  builder.Node("a", [&](const NodeContext&) -> Result<NodeResult> {
    EXPECT_TRUE(checkpoints.RequestCancel("f", true).has_value());
    return NodeResult{{{"log", "a"}}};
  });
  builder.Edge(kStart, "a").Edge("a", "b");
  const Graph graph = builder.Build().value();
  Flow flow(graph, "f", {.checkpoints = &checkpoints});
  EXPECT_EQ(flow.Start(nullptr)->kind, Outcome::Kind::kCancelled);
  EXPECT_EQ(LogOf(flow.Resume()), "a b");
}

// --- questions to a person

/// Asks `questions` times, then logs the answers.
NodeFunction Asking(size_t questions) {
  return [questions](const NodeContext& context) -> Result<NodeResult> {
    if (context.answers.size() < questions)
      return NodeResult{.question = Json("question " + std::to_string(context.answers.size()))};
    std::string all;
    for (const Json& answer : context.answers) all += answer.get<std::string>();
    return NodeResult{{{"log", all}}};
  };
}

TEST(Flow, QuestionsAreAnsweredOneAfterTheOther) {
  GraphBuilder builder = Logging({"b"});
  builder.Node("ask", Asking(2)).Edge(kStart, "ask").Edge("ask", "b");
  const Graph graph = builder.Build().value();
  MemoryCheckpoints checkpoints;
  const FlowOptions options{.checkpoints = &checkpoints};
  auto outcome = Flow(graph, "f", options).Start(nullptr);
  ASSERT_EQ(outcome->kind, Outcome::Kind::kWaiting);
  EXPECT_EQ(outcome->questions[0].value, "question 0");
  EXPECT_EQ(checkpoints.FindFlow("f").value()->status, "waiting");
  outcome = Flow(graph, "f", options).Resume();  // without an answer it still waits
  ASSERT_EQ(outcome->kind, Outcome::Kind::kWaiting);
  outcome = Flow(graph, "f", options).Resume({{0, "x"}});
  ASSERT_EQ(outcome->kind, Outcome::Kind::kWaiting);
  EXPECT_EQ(outcome->questions[0].value, "question 1");
  EXPECT_EQ(LogOf(Flow(graph, "f", options).Resume({{0, "y"}})), "xy b");
}

TEST(Flow, ParallelQuestionsAreAnsweredByTask) {
  GraphBuilder builder = Logging({"b"});
  builder.Node("ask", Asking(1)).Node("too", Asking(1)).Node("work", Log("work"));
  builder.Edge(kStart, "ask").Edge(kStart, "work").Edge(kStart, "too").Edge("too", "b");
  const Graph graph = builder.Build().value();
  MemoryCheckpoints checkpoints;
  Flow flow(graph, "f", {.checkpoints = &checkpoints});
  auto outcome = flow.Start(nullptr);
  ASSERT_EQ(outcome->questions.size(), 2u);
  EXPECT_EQ(outcome->questions[1].node, "too");
  EXPECT_EQ(outcome->questions[1].task, 2);
  outcome = flow.Resume({{2, "B"}});
  ASSERT_EQ(outcome->questions.size(), 1u);
  EXPECT_EQ(LogOf(flow.Resume({{0, "A"}})), "A work B b");
}

TEST(Flow, AnswersWithoutAQuestionAreErrors) {
  GraphBuilder builder = Logging({"b"});
  builder.Node("ask", Asking(1)).Edge(kStart, "ask").Edge("ask", "b");
  const Graph graph = builder.Build().value();
  MemoryCheckpoints checkpoints;
  Flow flow(graph, "f", {.checkpoints = &checkpoints});
  ASSERT_TRUE(flow.Start(nullptr));
  EXPECT_THAT(LogOf(flow.Resume({{5, "x"}})), HasSubstr("task 5 of the flow has no open question"));
}

TEST(Flow, QuestionsNeedCheckpoints) {
  GraphBuilder builder = Logging({});
  builder.Node("ask", Asking(1)).Edge(kStart, "ask");
  EXPECT_THAT(RunGraph(builder), HasSubstr("the flow keeps no checkpoints"));
}

TEST(Flow, AsksBeforeNamedNodes) {
  GraphBuilder builder = Logging({"a", "b"});
  builder.Edge(kStart, "a").Edge("a", "b");
  const Graph graph = builder.Build().value();
  MemoryCheckpoints checkpoints;
  Flow flow(graph, "f", {.checkpoints = &checkpoints, .interrupt_before = {"b"}});
  const auto outcome = flow.Start(nullptr);
  ASSERT_EQ(outcome->kind, Outcome::Kind::kWaiting);
  EXPECT_EQ(LogOf(outcome), "a");
  EXPECT_EQ(LogOf(flow.Resume({{0, "go"}})), "a b");
}

// --- subgraphs

Graph Outer(GraphBuilder inner) {
  const auto graph = std::make_shared<const Graph>(inner.Build().value());
  GraphBuilder builder = Logging({"a", "b"});
  builder.Node("inner", Subgraph{graph, {}, {"log"}});
  builder.Edge(kStart, "a").Edge("a", "inner").Edge("inner", "b");
  return builder.Build().value();
}

TEST(Subgraph, RunsAsANode) {
  GraphBuilder inner = Logging({"x", "y"});
  inner.Edge(kStart, "x").Edge("x", "y");
  const Graph graph = Outer(std::move(inner));
  EXPECT_EQ(LogOf(Flow(graph, "f").Start(nullptr)), "a x y b");
}

TEST(Subgraph, QuestionsReachThePersonAndAnswersTheNode) {
  GraphBuilder inner = Logging({"x"});
  inner.Node("ask", Asking(1)).Node("again", Asking(1));
  inner.Edge(kStart, "x").Edge("x", "ask").Edge("ask", "again");
  const Graph graph = Outer(std::move(inner));
  MemoryCheckpoints checkpoints;
  Flow flow(graph, "f", {.checkpoints = &checkpoints});
  auto outcome = flow.Start(nullptr);
  ASSERT_EQ(outcome->kind, Outcome::Kind::kWaiting);
  EXPECT_EQ(outcome->questions[0].value["node"], "ask");
  outcome = flow.Resume({{0, "one"}});
  ASSERT_EQ(outcome->kind, Outcome::Kind::kWaiting);
  EXPECT_EQ(outcome->questions[0].value["node"], "again");
  EXPECT_EQ(LogOf(flow.Resume({{0, "two"}})), "a x one two b");
  EXPECT_TRUE(checkpoints.List("f/2.0.inner").value().empty());  // inner checkpoints are removed
}

TEST(Subgraph, GoesOnInsideAfterAFailure) {
  int calls = 0;
  GraphBuilder inner = Logging({"x"});
  inner.Node("flaky", Flaky(calls, 2)).Edge(kStart, "x").Edge("x", "flaky");
  const Graph graph = Outer(std::move(inner));
  MemoryCheckpoints checkpoints;
  std::vector<std::string> started;
  Flow flow(graph, "f", {.checkpoints = &checkpoints, .events = [&](const FlowEvent& event) {
                           if (event.kind == FlowEvent::Kind::kTaskStarted)
                             started.push_back(event.node);
                         }});
  EXPECT_THAT(LogOf(flow.Start(nullptr)), HasSubstr("node 'inner', node 'flaky': busy"));
  EXPECT_EQ(LogOf(flow.Resume()), "a x flaky b");
  EXPECT_THAT(started, ElementsAre("a", "inner", "x", "flaky", "inner", "flaky", "b"));
}

// --- events

TEST(Flow, EventsTellTheStory) {
  std::vector<std::string> names;
  GraphBuilder builder = Logging({"a"});
  builder.Node("b", [](const NodeContext& context) -> Result<NodeResult> {
    context.emit({{"half", "way"}});
    return NodeResult();
  });
  builder.Edge(kStart, "a").Edge("a", "b");
  MemoryCheckpoints checkpoints;
  RunGraph(builder, {.checkpoints = &checkpoints, .events = [&](const FlowEvent& event) {
                       names.push_back(ToJson(event)["event"].get<std::string>());
                     }});
  EXPECT_THAT(names,
              ElementsAre("checkpoint", "started", "task_started", "task_finished", "checkpoint",
                          "task_started", "custom", "task_finished", "checkpoint", "finished"));
}

}  // namespace
}  // namespace atunner::workflow
