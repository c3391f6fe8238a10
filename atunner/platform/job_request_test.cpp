#include "atunner/platform/job_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/platform/job_runner.h"

namespace atunner::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

auto Parse(const char* text) { return ParseJobRequest(ParseJson(text).value()); }

std::vector<std::string> FieldsOf(const char* text) {
  std::vector<std::string> fields;
  const auto request = Parse(text);
  if (request) return {"none"};
  for (const FieldProblem& one : request.error()) fields.push_back(one.field);
  return fields;
}

TEST(JobRequest, AnOperatorWithAllItsFields) {
  const auto request = Parse(R"({"kind": "operator", "operator": "softmax", "shapes": [[4, 64]],
    "dtype": "float16", "accuracy": "strict", "target_gpu": "H200", "virtual": true, "seed": 7,
    "budget": {"trials": 5, "seconds": 2.5}, "strategy": "random", "where": ["vector == 4"],
    "objectives": ["time", "energy"], "fresh": true, "transfer": false, "baselines": false,
    "name": "n", "priority": 3, "labels": {"gpu": "H200"}})");
  ASSERT_TRUE(request) << request.error()[0].field << request.error()[0].detail;
  EXPECT_EQ(request->task.shapes, (std::vector<std::vector<int64_t>>{{4, 64}}));
  EXPECT_EQ(request->task.dtype, DType::kFloat16);
  EXPECT_EQ(request->task.accuracy, Accuracy::kStrict);
  EXPECT_EQ(request->tuning.target.gpu, "H200");
  EXPECT_TRUE(request->tuning.target.force_virtual);
  EXPECT_EQ(request->tuning.budget.trials, 5);
  EXPECT_EQ(request->tuning.budget.seconds, 2.5);
  EXPECT_EQ(request->tuning.seed, 7);
  EXPECT_THAT(request->tuning.where, ElementsAre("vector == 4"));
  EXPECT_EQ(request->tuning.objectives.size(), 2);
  EXPECT_TRUE(request->tuning.fresh);
  EXPECT_FALSE(request->tuning.transfer);
  EXPECT_FALSE(request->tuning.baselines);
  EXPECT_EQ(request->priority, 3);
  EXPECT_EQ(request->labels.at("gpu"), "H200");
  EXPECT_EQ(request->name, "n");
  EXPECT_EQ(CommandOf(*request, ""),
            "atunner optimize --operator softmax --input-shape 4,64 --dtype float16 --target-gpu "
            "H200 --virtual --budget " +
                ("'" + request->tuning.budget.ToString() + "'") +
                " --seed 7 --strategy random --where 'vector == 4' --fresh --no-transfer "
                "--no-baselines");
}

TEST(JobRequest, DefaultsAreThoseOfTheCommandLine) {
  const auto request = Parse(R"({"kind": "operator", "operator": "softmax", "shapes": [[4, 64]]})")
                           .value();
  const jobs::TuningOptions defaults;
  EXPECT_EQ(request.tuning.budget.trials, defaults.budget.trials);
  EXPECT_EQ(request.tuning.seed, defaults.seed);
  EXPECT_EQ(request.tuning.strategy, defaults.strategy);
  EXPECT_EQ(request.tuning.transfer, defaults.transfer);
  EXPECT_EQ(request.name, "softmax");
}

TEST(JobRequest, SourcesAndGraphs) {
  const auto source = Parse(R"({"kind": "source", "upload": "up-1", "kernel": "k"})").value();
  EXPECT_EQ(source.upload, "up-1");
  EXPECT_THAT(CommandOf(source, "my kernel.cu"),
              HasSubstr("--source 'my kernel.cu' --kernel k --target-gpu auto"));
  const auto graph = Parse(R"({"kind": "graph", "dims": {"B": [8]}, "graph":
    "graph double\ndim B = 1..64\ninput x: float32[B, 4]\ny = x + x\noutput y\n"})");
  ASSERT_TRUE(graph) << graph.error()[0].detail;
  EXPECT_EQ(graph->task.dims.size(), 1);
  EXPECT_THAT(CommandOf(*graph, ""), HasSubstr("--graph graph.atg --dim B=8"));
}

TEST(JobRequest, EverythingWrongIsNamedAtOnce) {
  EXPECT_THAT(FieldsOf(R"({"kind": "operator", "operator": "softmax", "shapes": [[4, "x"], 3],
    "dtype": "float31", "accuracy": "x", "target_gpu": "nothing", "budget": {"trials": 0, "x": 1},
    "objectives": ["speed"], "seed": -1, "priority": 101, "labels": {"a": 1}, "colour": "red",
    "where": "x", "fresh": 1, "attributes": {"a": []}, "name": 5})"),
              UnorderedElementsAre("shapes[0]", "shapes[1]", "dtype", "accuracy", "target_gpu",
                                   "budget.trials", "budget.x", "objectives", "seed", "priority",
                                   "labels.a", "colour", "where", "fresh", "attributes.a", "name"));
}

TEST(JobRequest, MissingFieldsAreNamed) {
  EXPECT_THAT(FieldsOf("{}"), ElementsAre("kind"));
  EXPECT_THAT(FieldsOf("[]"), ElementsAre(""));
  EXPECT_THAT(FieldsOf(R"({"kind": "other"})"), ElementsAre("kind"));
  EXPECT_THAT(FieldsOf(R"({"kind": "operator"})"), ElementsAre("operator", "shapes"));
  EXPECT_THAT(FieldsOf(R"({"kind": "source"})"), ElementsAre("upload"));
  EXPECT_THAT(FieldsOf(R"({"kind": "graph"})"), ElementsAre("graph"));
  EXPECT_THAT(FieldsOf(R"({"kind": "graph", "upload": "u", "dims": {"B": "x"}})"),
              ElementsAre("dims.B"));
  EXPECT_THAT(FieldsOf(R"({"kind": "source", "upload": "u", "shapes": []})"),
              ElementsAre("shapes"));
}

TEST(JobRequest, TasksAreLookedUp) {
  const auto unknown = Parse(R"({"kind": "operator", "operator": "sofmax", "shapes": [[4, 64]]})");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error()[0].field, "operator");
  EXPECT_THAT(unknown.error()[0].hint, HasSubstr("softmax"));
  EXPECT_THAT(FieldsOf(R"({"kind": "operator", "operator": "softmax", "shapes": [[4, -64]]})"),
              ElementsAre(HasSubstr("shapes")));
  EXPECT_FALSE(Parse(R"({"kind": "graph", "graph": "no graph"})"));
  EXPECT_THAT(FieldsOf(R"({"kind": "operator", "operator": "sofmax", "shapes": [[4, 4]],
    "seed": -1})"),
              UnorderedElementsAre("operator", "seed"));
}

}  // namespace
}  // namespace atunner::platform
