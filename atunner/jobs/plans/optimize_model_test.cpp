// Models become plans, with fakes at the doors: no kernel is compiled and none is run.
#include "atunner/jobs/plans/optimize_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/importers/zip_support_test.h"
#include "atunner/jobs/plans/plan_builder.h"
#include "atunner/jobs/testing/fake_services_test.h"

namespace atunner::jobs {
namespace {

using importers::OutputRole;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = PlanBuffer::Kind;

/// Floats 0, 1, 2, … as bytes.
std::string Bytes(size_t count) {
  std::string bytes(count * sizeof(float), '\0');
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
  }
  return bytes;
}

class OptimizeModels : public testing::Test {
 protected:
  /// y = relu(x + w), or another operator in place of relu; w is in a file with `strides`.
  Path Model(const std::string& target = "aten.relu.default",
             const std::string& strides = R"([{"as_int": 3}, {"as_int": 1}])") {
    auto entries = importers::SmallArchive();
    for (importers::TestEntry& entry : entries) {
      if (entry.name.ends_with("model.json")) entry.content = importers::SmallProgram(8, target);
      if (entry.name.ends_with("weight_0")) entry.content = Bytes(6);
      const std::string dense = R"([{"as_int": 3}, {"as_int": 1}])";
      if (entry.name.ends_with("_config.json"))
        entry.content.replace(entry.content.find(dense), dense.size(), strides);
    }
    const Path path = fakes_.folder.path() / "small.pt2";
    EXPECT_TRUE(WriteFileAtomic(path, importers::ZipOf(entries)));
    return path;
  }
  OptimizeModelRequest Request(const Path& model) const {
    OptimizeModelRequest request{model, {}};
    request.tuning.target.gpu = "A100";
    request.tuning.budget = {.trials = 3, .seconds = {}};
    request.tuning.out = out();
    return request;
  }
  Path out() const { return fakes_.folder.path() / "plan"; }
  Result<OptimizeModelResult> Run(const OptimizeModelRequest& request) {
    return OptimizeModel(request, fakes_.services, [](const Event&) {}, {});
  }

  FakeServices fakes_;
};

TEST_F(OptimizeModels, TheFolderHoldsPlanKernelsAndWeights) {
  const auto result = Run(Request(Model()));
  ASSERT_TRUE(result) << result.error().ToString();
  const ExecutionPlan plan = LoadPlan(out()).value();
  EXPECT_EQ(PlanText(plan), PlanText(result->plan));
  ASSERT_EQ(plan.steps.size(), 1u);
  ASSERT_EQ(plan.buffers.size(), 3u);
  EXPECT_EQ(plan.buffers[0].name, "x");
  EXPECT_EQ(plan.buffers[1].qualified_name, "w");
  EXPECT_EQ(plan.buffers[1].kind, Kind::kWeight);
  EXPECT_EQ(plan.buffers[2].kind, Kind::kOutput);
  EXPECT_EQ(plan.workspace_bytes, 0u);
  EXPECT_EQ(ReadFile(out() / kWeightsFile).value(), Bytes(6));
  EXPECT_EQ(plan.weight_digest, DigestOf(Bytes(6)));
  EXPECT_TRUE(LoadArtifact(out() / plan.kernels[0]));
  EXPECT_GT(result->KernelNs(), 0);
  EXPECT_EQ(ToJson(*result)["steps"]["launch"], 1);
}

TEST_F(OptimizeModels, StridedWeightsBecomeDense) {
  ASSERT_TRUE(Run(Request(Model("aten.relu.default", R"([{"as_int": 1}, {"as_int": 2}])"))));
  const std::string weights = ReadFile(out() / kWeightsFile).value();
  std::vector<float> values(6);
  ASSERT_EQ(weights.size(), 24u);
  std::memcpy(values.data(), weights.data(), weights.size());
  EXPECT_THAT(values, ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST_F(OptimizeModels, UnknownOperatorsBecomeSteps) {
  const auto result = Run(Request(Model("aten.mystery.default")));
  ASSERT_TRUE(result) << result.error().ToString();
  ASSERT_EQ(result->plan.steps.size(), 2u);
  EXPECT_EQ(result->plan.steps[1].kind, PlanStep::Kind::kExtern);
  EXPECT_EQ(result->plan.steps[1].target, "aten.mystery.default");
  EXPECT_EQ(result->plan.workspace_bytes, 256u);
  ASSERT_EQ(result->notes.size(), 1u);
  EXPECT_EQ(ToJson(*result)["externs"][0], "aten.mystery.default");
}

TEST_F(OptimizeModels, AFirstGuessIsOneTrialOfEachKernel) {
  OptimizeModelRequest request = Request(Model());
  request.tuning.thoroughness = Thoroughness::kFirstRight;
  const auto result = Run(request);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->kernels.at(0).report.trials.size(), 1u);
}

TEST_F(OptimizeModels, AFirstGuessOnAGpuHasNoTime) {
  fakes_.devices.gpu = true;
  OptimizeModelRequest request = Request(Model());
  request.tuning.thoroughness = Thoroughness::kFirstRight;
  const auto result = Run(request);
  ASSERT_TRUE(result) << result.error().ToString();
  const Artifact artifact = LoadArtifact(out() / LoadPlan(out()).value().kernels.at(0)).value();
  EXPECT_TRUE(artifact.trial.verdict.correct());
  EXPECT_FALSE(artifact.trial.ObjectiveNs());
}

TEST_F(OptimizeModels, WhatWasNotCheckedSaysSo) {
  fakes_.devices.wrong = 100;  // nobody looks
  OptimizeModelRequest request = Request(Model());
  request.tuning.thoroughness = Thoroughness::kUnchecked;
  const auto result = Run(request);
  ASSERT_TRUE(result) << result.error().ToString();
  const Artifact artifact = LoadArtifact(out() / LoadPlan(out()).value().kernels.at(0)).value();
  EXPECT_EQ(artifact.trial.verdict.kind, VerdictKind::kUnchecked);
  EXPECT_FALSE(artifact.trial.ObjectiveNs());
}

TEST_F(OptimizeModels, PlainKernelsStandInForAFamilyWithoutACorrectKernel) {
  OptimizeModelRequest request = Request(Model());
  fakes_.devices.wrong = 3;
  const auto result = Run(request);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_THAT(result->notes, ElementsAre(AllOf(HasSubstr("plain kernels"), HasSubstr("off by 3"))));
  const Report& report = result->kernels.at(0).report;
  ASSERT_EQ(report.trials.size(), 1u);
  EXPECT_EQ(report.space_size, 1u) << "not the family's";
  EXPECT_EQ(LoadPlan(out()).value().steps.size(), 1u);
}

TEST_F(OptimizeModels, WithoutAnyCorrectKernelTheReasonIsSaid) {
  fakes_.devices.wrong = 100;
  for (const bool first_guess : {false, true}) {
    OptimizeModelRequest request = Request(Model());
    request.tuning.thoroughness = first_guess ? Thoroughness::kFirstRight : Thoroughness::kSearch;
    const auto result = Run(request);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().ToString(), HasSubstr("wrong-result"));
    EXPECT_THAT(result.error().ToString(), HasSubstr("off by 3"));
    EXPECT_FALSE(Exists(out() / kPlanFile));
  }
}

TEST_F(OptimizeModels, AnEarlierPlanIsReplacedAndOtherFoldersAreRefused) {
  ASSERT_TRUE(Run(Request(Model("aten.mystery.default"))));
  ASSERT_TRUE(MakeDirectories(out() / "kernels/9-old"));
  ASSERT_TRUE(Run(Request(Model())));
  EXPECT_EQ(LoadPlan(out()).value().steps.size(), 1u);
  EXPECT_FALSE(Exists(out() / "kernels/9-old"));
  OptimizeModelRequest other = Request(Model());
  other.tuning.out = fakes_.folder.path() / "photos";
  ASSERT_TRUE(WriteFileAtomic(other.tuning.out / "holiday.jpg", "…"));
  const auto refused = Run(other);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("holiday.jpg"));
  other.tuning.out = fakes_.folder.path() / "photos/holiday.jpg";
  EXPECT_THAT(Run(other).error().ToString(), HasSubstr("is no folder"));
  other = Request(Model());
  other.tuning.where = {"tile == 4"};
  EXPECT_THAT(Run(other).error().ToString(), HasSubstr("request.where"));
}

// What a model with several results and changed buffers becomes.

importers::ModelValue Value(const std::string& name) {
  return {name, {DType::kFloat32, graph::Shape{graph::Extent(4)}}};
}

/// x and the buffer `count` go in; one call of the framework makes u and v of them.
importers::DividedModel Called() {
  importers::DividedModel model;
  model.inputs = {{Value("x"), importers::InputKind::kUser, "", {}},
                  {Value("b_count"), importers::InputKind::kBuffer, "count",
                   importers::WeightPlace{"weight_0", 0, 0, {1}}},
                  {Value("b_idle"), importers::InputKind::kBuffer, "idle",
                   importers::WeightPlace{"weight_1", 0, 0, {1}}}};
  model.externs = {Value("u"), Value("v")};
  model.steps.emplace_back(
      importers::ExternCall{"mine.both.default", "[]", {"x", "b_count"}, {"u", "v"}});
  return model;
}

std::vector<std::string> CopiesOf(const ExecutionPlan& plan) {
  std::vector<std::string> copies;
  for (const PlanStep& step : plan.steps) {
    if (step.kind == PlanStep::Kind::kCopy)
      copies.push_back(plan.buffers[step.reads[0].buffer].name + " -> " +
                       plan.buffers[step.writes[0].buffer].name);
  }
  return copies;
}

TEST(PlanBuilder, ResultsThatAreNotTheirOwnAreCopies) {
  importers::DividedModel model = Called();
  model.outputs = {{"v", OutputRole::kUpdate, "count"},
                   {"u", OutputRole::kResult, ""},
                   {"x", OutputRole::kResult, ""},
                   {"u", OutputRole::kResult, ""}};
  const auto plan = BuildPlan(model, {}, {});
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_THAT(CopiesOf(*plan), ElementsAre("x -> result.2", "u -> result.3", "v -> b_count"));
  std::vector<std::string> outputs, all;
  for (const size_t i : plan->BuffersOf(Kind::kOutput)) outputs.push_back(plan->buffers[i].name);
  for (const PlanBuffer& buffer : plan->buffers) all.push_back(buffer.name);
  EXPECT_THAT(outputs, ElementsAre("u", "result.2", "result.3"));
  EXPECT_THAT(all, testing::Not(testing::Contains("b_idle"))) << "nothing reads it";
}

TEST(PlanBuilder, WeightsWithoutValuesBecomeInputs) {
  importers::DividedModel model = Called();
  for (importers::DividedInput& input : model.inputs) input.place.reset();
  model.outputs = {{"u", OutputRole::kResult, ""}, {"v", OutputRole::kUpdate, "x"}};
  const auto plan = BuildPlan(model, {}, {});
  ASSERT_TRUE(plan) << plan.error().ToString();
  const auto inputs = plan->BuffersOf(Kind::kInput);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(plan->buffers[inputs[1]].qualified_name, "count");
  EXPECT_THAT(CopiesOf(*plan), ElementsAre("v -> x"));
}

}  // namespace
}  // namespace atunner::jobs
