// Patterns of layers as PyTorch emits them: which families take them, with how many kernels, and
// why they are apart where they are. testdata/patterns.txt is the table; a line of it is
//   NAME | families in order | launches | reasons of the boundaries | what the line shows
#include "atunner/fusion/fusion_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/fusion/fusion_support_test.h"
#include "atunner/fusion/plan_text.h"
#include "atunner/graph/text.h"
#include "atunner/model/json/json.h"

namespace atunner::fusion {
namespace {

struct Row {
  std::string name, families, launches, reasons;
};

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::vector<Row> Table() {
  const std::string text = ReadFile(ATUNNER_SOURCE_DIR "/atunner/fusion/testdata/patterns.txt")
                               .value();
  std::vector<Row> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(Trimmed(cell));
    cells.resize(5);
    rows.push_back({cells[0], cells[1], cells[2], cells[3]});
  }
  return rows;
}

std::string ReasonsOf(const FusionPlan& plan) {
  std::set<std::string> reasons;
  for (const Boundary& boundary : plan.boundaries) reasons.emplace(Name(boundary.reason));
  return fmt::format("{}", fmt::join(reasons, ", "));
}

TEST(FusionPlan, PatternsOfLayersShareKernels) {
  ASSERT_GE(Table().size(), 20u);
  std::string made;  // the whole table, so that it can be read at once where lines are wrong
  for (const Row& row : Table()) {
    SCOPED_TRACE(row.name);
    const FusionPlan plan = PlanOf(row.name);
    const std::string families = fmt::format("{}", fmt::join(FamiliesOf(plan), ", "));
    const std::string launches = std::to_string(plan.after.launches);
    EXPECT_EQ(families, row.families);
    EXPECT_EQ(launches, row.launches);
    EXPECT_EQ(ReasonsOf(plan), row.reasons);
    // Two may arrange a convolution's image and filter for the tensor cores.
    const auto convolutions = std::ranges::count(FamiliesOf(plan), "convolution");
    EXPECT_LE(plan.after.launches, plan.before.launches + 2 * convolutions);
    EXPECT_LE(plan.after.bytes, plan.before.bytes);
    made += fmt::format("{} | {} | {} | {} |\n", row.name, families, launches, ReasonsOf(plan));
  }
  if (HasFailure()) GTEST_LOG_(INFO) << "\n" << made;
}

TEST(FusionPlan, EachNodeIsInOneGroupAndBoundariesJoinThem) {
  for (const char* name :
       {"conv_chain", "linear_shared", "attention", "layer_norm_residual_kept"}) {
    SCOPED_TRACE(name);
    const FusionPlan plan = PlanOf(name);
    std::multiset<graph::NodeId> nodes;
    for (const FusedGroup& group : plan.groups)
      nodes.insert(group.nodes.begin(), group.nodes.end());
    for (const graph::NodeId id : nodes) EXPECT_EQ(nodes.count(id), 1u) << id;
    for (const Boundary& boundary : plan.boundaries) {
      EXPECT_LT(boundary.from, boundary.to);
      EXPECT_THAT(plan.groups[boundary.from].outputs, testing::Contains(boundary.value));
      EXPECT_THAT(plan.groups[boundary.to].inputs, testing::Contains(boundary.value));
      EXPECT_FALSE(boundary.explanation.empty());
    }
  }
}

TEST(FusionPlan, RoundingsAreListedWhereTheyAreKept) {
  EXPECT_THAT(PlanOf("rounded_argmax").roundings,
              testing::ElementsAre(testing::HasSubstr("extreme")));
  EXPECT_THAT(PlanOf("rounded_compare").roundings,
              testing::Contains(testing::HasSubstr("comparison")));
  EXPECT_TRUE(PlanOf("rounded_relu").roundings.empty());
  EXPECT_FALSE(PlanOf("rounded_relu", Roundings::kAll).roundings.empty());
}

TEST(FusionPlan, WeightsAloneAreComputedOnce) {
  const auto graph = graph::Parse(
      "graph g\ninput x: float32[64, 256]\ninput w: float32[256, 256]\ninput v: float32[256, 256]\n"
      "u = contract(w, v, equation=\"mk,kn->mn\")\ny = contract(x, u, equation=\"mk,kn->mn\")\n"
      "output y\n",
      "test.atg");
  const PlanRequest request{.inputs = {{}, {.weight = true}, {.weight = true}}};
  const auto plan = PlanFusion(graph.value(), request, FindProfile("H200").value());
  ASSERT_TRUE(plan.has_value()) << plan.error().ToString();
  ASSERT_EQ(plan->groups.size(), 2u);
  EXPECT_TRUE(plan->groups[0].once);
  EXPECT_FALSE(plan->groups[1].once);
  EXPECT_EQ(plan->after.launches, plan->groups[1].launches);
}

TEST(TextOfPlan, TellsTheWholeInThreeForms) {
  const FusionPlan plan = PlanOf("linear_linear");
  const std::string brief = TextOf(plan, false), full = TextOf(plan, true);
  EXPECT_THAT(brief, testing::HasSubstr("group 1: product"));
  EXPECT_THAT(brief, testing::Not(testing::HasSubstr("apart from")));
  EXPECT_THAT(full, testing::HasSubstr("apart from group 1 at "));
  const Json json = JsonOf(plan);
  EXPECT_EQ(json["groups"].size(), plan.groups.size());
  EXPECT_EQ(json["boundaries"][0]["from"], 1);
  EXPECT_EQ(json["after"]["launches"], plan.after.launches);
  const std::string dot = DotOf(plan);
  EXPECT_THAT(dot, testing::HasSubstr("subgraph cluster_1"));
  EXPECT_EQ(std::ranges::count(dot, '{'), std::ranges::count(dot, '}'));
}

}  // namespace
}  // namespace atunner::fusion
