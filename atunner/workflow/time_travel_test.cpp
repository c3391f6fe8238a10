// Replay, edit and fork from every checkpoint of a flow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/workflow/flow.h"
#include "atunner/workflow/memory_checkpoints.h"

namespace atunner::workflow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Each node appends its name and the value of "x" to "log", and counts its calls.
struct Counted {
  std::map<std::string, int> calls;

  NodeFunction Node(const std::string& name) {
    return [this, name](const NodeContext& context) -> Result<NodeResult> {
      ++calls[name];
      const std::string input = context.input ? context.input->dump() : "";
      return NodeResult{{{"log", name + input + "@" + context.state["x"].dump()}}};
    };
  }
  /// a, then two tasks of b, then c: checkpoints 1 to 4.
  Graph Make() {
    GraphBuilder builder("travel");
    builder.Add(Appended("log")).Add(LastValue("x", 0));
    builder.Node("a", Node("a")).Node("b", Node("b")).Node("c", Node("c"));
    builder.Edge(kStart, "a").Edge("b", "c").Edge("c", kEnd);
    builder.Branch("a",
                   [](const State&) { return std::vector<Target>{{"b", Json(1)}, {"b", Json(2)}}; },
                   {"b"});
    return builder.Build().value();
  }
};

class Travel : public testing::Test {
 protected:
  void SetUp() override {
    const auto outcome = Flow(graph_, "f", options_).Start(nullptr);
    ASSERT_TRUE(outcome);
    counted_.calls.clear();
  }
  std::string Resumed(const std::string& flow) {
    const auto outcome = Flow(graph_, flow, options_).Resume();
    if (!outcome) return outcome.error().ToString();
    std::string text;
    for (const Json& line : (*outcome->state)["log"])
      text += (text.empty() ? "" : " ") + line.get<std::string>();
    return text;
  }
  int Calls() const {
    int sum = 0;
    for (const auto& [name, count] : counted_.calls) sum += count;
    return sum;
  }

  Counted counted_;
  Graph graph_ = counted_.Make();
  MemoryCheckpoints checkpoints_;
  FlowOptions options_{.checkpoints = &checkpoints_};
};

TEST_F(Travel, AFinishedFlowHasACheckpointForEachStep) {
  const auto all = checkpoints_.List("f").value();
  ASSERT_EQ(all.size(), 4u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].number, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(all[i].parent, static_cast<int64_t>(i));
    EXPECT_EQ(all[i].step, static_cast<int64_t>(i));
  }
  EXPECT_EQ(all[0].origin, "input");
  EXPECT_EQ(all[1].next.size(), 2u);
  EXPECT_TRUE(all[3].next.empty());
}

TEST_F(Travel, ResumingAFinishedFlowRunsNothing) {
  EXPECT_EQ(Resumed("f"), "a@0 b1@0 b2@0 c@0");
  EXPECT_EQ(Calls(), 0);
}

struct Case {
  int64_t number;
  int calls;           ///< nodes that run again
  const char* edited;  ///< the log after x became 7 at that checkpoint
};
constexpr Case kCases[] = {{1, 4, "a@7 b1@7 b2@7 c@7"},
                           {2, 3, "a@0 b1@7 b2@7 c@7"},
                           {3, 1, "a@0 b1@0 b2@0 c@7"},
                           {4, 0, "a@0 b1@0 b2@0 c@0"}};

class TravelTo : public Travel, public testing::WithParamInterface<Case> {};

TEST_P(TravelTo, ReplayRunsOnlyWhatFollows) {
  ASSERT_TRUE(GoBack(graph_, checkpoints_, "f", GetParam().number));
  EXPECT_EQ(Resumed("f"), "a@0 b1@0 b2@0 c@0");
  EXPECT_EQ(Calls(), GetParam().calls);
}

TEST_P(TravelTo, ReplayKeepsTheOldBranch) {
  const std::string before = ToJson(*checkpoints_.Get("f", 4).value()).dump();
  const auto number = GoBack(graph_, checkpoints_, "f", GetParam().number);
  EXPECT_EQ(number.value(), 5);
  Resumed("f");
  EXPECT_EQ(ToJson(*checkpoints_.Get("f", 4).value()).dump(), before);
  EXPECT_EQ(checkpoints_.Get("f", 5).value()->parent, GetParam().number);
  EXPECT_EQ(checkpoints_.Get("f", 5).value()->origin, "replay");
}

TEST_P(TravelTo, EditChangesWhatFollows) {
  ASSERT_TRUE(GoBack(graph_, checkpoints_, "f", GetParam().number, {{"x", 7}}));
  EXPECT_EQ(checkpoints_.Get("f", 5).value()->origin, "edit");
  EXPECT_EQ(Resumed("f"), GetParam().edited);
}

TEST_P(TravelTo, ForkIsAFlowOfItsOwn) {
  ASSERT_TRUE(
      Fork(graph_, checkpoints_, "f", GetParam().number, {.id = "g"}, {{"x", 7}}).has_value());
  const auto record = checkpoints_.FindFlow("g").value();
  EXPECT_EQ(record->parent, "f");
  EXPECT_EQ(record->parent_number, GetParam().number);
  EXPECT_EQ(record->graph, "travel");
  EXPECT_EQ(Resumed("g"), GetParam().edited);
  EXPECT_EQ(checkpoints_.List("f").value().size(), 4u);
  EXPECT_EQ(checkpoints_.FindFlow("g").value()->status, "finished");
}

TEST_P(TravelTo, AForkOfAForkAndAReplayOfAReplay) {
  ASSERT_TRUE(Fork(graph_, checkpoints_, "f", GetParam().number, {.id = "g"}).has_value());
  ASSERT_TRUE(Fork(graph_, checkpoints_, "g", 1, {.id = "h"}).has_value());
  EXPECT_EQ(Resumed("h"), "a@0 b1@0 b2@0 c@0");
  ASSERT_TRUE(GoBack(graph_, checkpoints_, "f", GetParam().number));
  ASSERT_TRUE(GoBack(graph_, checkpoints_, "f", 5));
  EXPECT_EQ(Resumed("f"), "a@0 b1@0 b2@0 c@0");
}

INSTANTIATE_TEST_SUITE_P(Everywhere, TravelTo, testing::ValuesIn(kCases));

TEST_F(Travel, UnknownPlacesAreErrors) {
  EXPECT_THAT(GoBack(graph_, checkpoints_, "f", 9).error().what, HasSubstr("no checkpoint 9"));
  EXPECT_FALSE(GoBack(graph_, checkpoints_, "nowhere", 1));
  EXPECT_FALSE(Fork(graph_, checkpoints_, "f", 0, {.id = "g"}));
  EXPECT_FALSE(Fork(graph_, checkpoints_, "f", 1, {.id = "f"}));
  EXPECT_FALSE(GoBack(graph_, checkpoints_, "f", 1, {{"typo", 1}}));
}

TEST_F(Travel, AnotherVersionOfTheGraphIsRefused) {
  ASSERT_TRUE(GoBack(graph_, checkpoints_, "f", 2));
  GraphBuilder builder("travel");
  builder.Add(Appended("log")).Add(LastValue("x", 0));
  builder.Node("a", counted_.Node("a")).Edge(kStart, "a");
  const Graph other = builder.Build().value();
  const auto outcome = Flow(other, "f", options_).Resume();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().what, HasSubstr("node 'b', which the graph lacks"));
}

}  // namespace
}  // namespace atunner::workflow
