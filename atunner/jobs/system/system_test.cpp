#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/importers/import_model.h"
#include "atunner/jobs/system/model_profile.h"
#include "atunner/jobs/system/parallel_request.h"
#include "atunner/jobs/system/system_config.h"
#include "atunner/jobs/system/system_measure.h"
#include "atunner/jobs/system/system_report.h"
#include "atunner/jobs/system/system_run.h"
#include "atunner/jobs/system/yaml.h"
#include "atunner/planning/parallel/plan_text.h"

namespace atunner::jobs {
namespace {

using testing::HasSubstr;

constexpr char kGpt[] = ATUNNER_SOURCE_DIR "/examples/system/gpt.json";

TEST(Yaml, ReadsMapsListsAndTheCoreTypes) {
  const auto yaml = ParseYaml(
      "# comment\n"
      "a: 1\n"
      "b: {c: -2.5e3, d: 'true', e: true}\n"
      "list:\n"
      "  - x y\n"
      "  - ~\n"
      "  - [0x10, .5]\n");
  ASSERT_TRUE(yaml) << yaml.error().ToString();
  EXPECT_EQ(DumpJson(yaml->value),
            R"({"a":1,"b":{"c":-2500.0,"d":"true","e":true},"list":["x y",null,["0x10",0.5]]})");
  EXPECT_EQ(yaml->lines.at("b.c"), 3u);
  EXPECT_EQ(yaml->lines.at("list[1]"), 6u);
}

TEST(Yaml, RefusesWhatCanGrowOrSurprise) {
  const auto error = [](const std::string& text) { return ParseYaml(text).error().ToString(); };
  EXPECT_THAT(error("a: &x 1\nb: *x\n"), HasSubstr("line 1: anchors and tags"));
  EXPECT_THAT(error("a: 1\nb: *x\n"), HasSubstr("line 2: aliases"));
  EXPECT_THAT(error("a: !!python/object 1\n"), HasSubstr("anchors and tags"));
  EXPECT_THAT(error("a: 1\na: 2\n"), HasSubstr("line 2: the key 'a' occurs twice"));
  EXPECT_THAT(error("a: 1\n---\nb: 2\n"), HasSubstr("second document"));
  EXPECT_THAT(error("a: [1\n"), HasSubstr("line"));
  EXPECT_THAT(error(""), HasSubstr("empty"));
  EXPECT_THAT(error(std::string(40, '[') + std::string(40, ']')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error(std::string(2 << 20, 'a')), HasSubstr("larger than 1 MB"));
}

TEST(SystemConfig, AllFaultsAreNamedAtOnceWithTheirLines) {
  const auto config = ParseSystemConfig(
      "model:\n"
      "  files: model.json\n"
      "hardware: 8xH200\n"
      "objective: speed\n"
      "training:\n"
      "  batch: -3\n");
  ASSERT_FALSE(config);
  const std::string text = config.error().ToString();
  EXPECT_THAT(text, HasSubstr("line 2: model.files is no key (did you mean model.file?)"));
  EXPECT_THAT(text, HasSubstr("line 3: hardware must be a map of keys"));
  EXPECT_THAT(text, HasSubstr("line 4: objective must be throughput"));
  EXPECT_THAT(text, HasSubstr("line 6: training.batch must be a whole number above 0"));
  EXPECT_THAT(text, HasSubstr("model.file is missing"));
  EXPECT_THAT(text, HasSubstr("hardware.gpus is missing"));
}

TEST(SystemConfig, WeightsNeedAWeight) {
  const std::string base = "model: {file: m}\nhardware: {gpus: 1xH100}\nobjective: weights\n";
  EXPECT_THAT(ParseSystemConfig(base).error().ToString(), HasSubstr("needs a weight above 0"));
  const auto config = ParseSystemConfig(base + "weights: {memory: 2}\n");
  ASSERT_TRUE(config) << config.error().ToString();
  EXPECT_EQ(config->memory_weight, 2);
}

TEST(SystemConfig, EveryKeyIsDocumented) {
  const std::string page = ReadFile(ATUNNER_SOURCE_DIR "/docs/how-to/optimize-a-system.md").value();
  for (const SystemKey& key : SystemKeys())
    EXPECT_THAT(page, HasSubstr("`" + std::string(key.key) + "`"));
}

TEST(SystemConfig, TheExamplesAreValid) {
  for (const char* name : {"throughput.yaml", "memory.yaml", "gpt2.yaml"}) {
    const auto config = ReadSystemConfig(Path(ATUNNER_SOURCE_DIR "/examples/system") / name);
    ASSERT_TRUE(config) << config.error().ToString();
    EXPECT_TRUE(Exists(config->model));
  }
}

class ModelProfileTest : public testing::Test {
 protected:
  const importers::ImportedModel model_ = importers::ImportModel(kGpt).value();
  const planning::ModelProfile profile_ = ProfileOfModel(model_).value();
};

/// The example: 4 blocks of width 256, vocabulary 2048, 128 tokens, batch 4
/// (examples/system/gpt.py)
TEST_F(ModelProfileTest, LayersAreThoseOfTheModel) {
  std::vector<std::string> names;
  for (const auto& layer : profile_.layers) names.push_back(layer.name);
  EXPECT_THAT(names,
              testing::ElementsAre("tokens", "places", "h.0", "h.1", "h.2", "h.3", "norm", "head"));
  EXPECT_EQ(profile_.batch, 4);
  EXPECT_FALSE(profile_.training_step);
  EXPECT_EQ(profile_.parameter_bytes, 4);
}

TEST_F(ModelProfileTest, WorkAndParametersAreThoseOfABlock) {
  const auto& block = profile_.layers[3];
  const double d = 256, tokens = 128;
  EXPECT_EQ(block.parameters, 12 * d * d + 9 * d + 4 * d);
  EXPECT_EQ(block.split_parameters, 12 * d * d);
  double products = 0;
  for (const auto& kernel : block.kernels)
    if (kernel.product) products += kernel.flops;
  EXPECT_NEAR(products, 2 * tokens * 12 * d * d + 2 * 2 * tokens * tokens * d, 1);
  EXPECT_EQ(block.reduced_bytes, 2 * tokens * d * 4) << "two all-reduces, as Megatron has them";
  EXPECT_EQ(block.output_bytes, 2 * tokens * d * 4)
      << "the residual, and the next norm's values before its weights are read";
  EXPECT_GT(block.saved_bytes, 10 * tokens * d * 4);
  EXPECT_LT(block.saved_bytes, 60 * tokens * d * 4);
  EXPECT_GT(block.split_saved_bytes, 0);
}

TEST_F(ModelProfileTest, EagerModeHasMoreKernels) {
  const auto eager = ProfileOfModel(model_, Kernels::kEachNode).value();
  EXPECT_GT(eager.layers[3].kernels.size(), profile_.layers[3].kernels.size());
  EXPECT_EQ(eager.layers[3].parameters, profile_.layers[3].parameters);
}

TEST(ParallelRequest, ErrorsNameTheField) {
  const auto error = [](const ParallelModelRequest& request) {
    return ReadParallelRequest(request).error().ToString();
  };
  EXPECT_THAT(error({.model = kGpt, .gpus = "H200"}), HasSubstr("request.gpus"));
  EXPECT_THAT(error({.model = kGpt, .batch = -1}), HasSubstr("request.batch"));
  EXPECT_THAT(error({.model = "/nowhere.json"}), HasSubstr("nowhere"));
}

SystemConfig Example(SystemObjective objective) {
  SystemConfig config{.model = kGpt, .gpus = "2xH100", .objective = objective};
  config.batch = 8;
  config.largest_batch = 16;
  return config;
}

TEST(System, ThreeObjectivesHaveThreeAnswers) {
  const auto fast = OptimizeSystem(Example(SystemObjective::kThroughput));
  ASSERT_TRUE(fast) << fast.error().ToString();
  const auto prompt = OptimizeSystem(Example(SystemObjective::kLatency)).value();
  const auto small = OptimizeSystem(Example(SystemObjective::kMemory)).value();
  const auto rate = [](const SystemResult& r) {
    return static_cast<double>(r.request.facts.batch) / r.plan.step_us;
  };
  EXPECT_EQ(fast->request.facts.batch, 16);
  EXPECT_EQ(prompt.request.facts.batch, 8);
  EXPECT_GT(rate(*fast), rate(prompt));
  EXPECT_LT(prompt.plan.step_us, fast->plan.step_us);
  EXPECT_LT(small.plan.bytes, prompt.plan.bytes);
  EXPECT_LT(small.plan.bytes, fast->plan.bytes);
  EXPECT_THAT(fast->explanation, HasSubstr("for memory alone"));
  EXPECT_THAT(small.explanation, HasSubstr("for throughput alone"));
}

TEST(System, SharesOfTheStepsAddUp) {
  const auto result = OptimizeSystem(Example(SystemObjective::kThroughput)).value();
  ASSERT_GE(result.steps.size(), 3u);
  EXPECT_EQ(result.steps[0].name, "today");
  double sum = 0;
  for (const SystemStep& step : result.steps) sum += step.share;
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(result.steps.back().step_us, result.plan.step_us, 1e-6 * result.plan.step_us);
  EXPECT_FALSE(result.hot.empty());
  EXPECT_LT(result.kernels_after, result.kernels_before);
}

TEST(System, WeightsLieBetweenTheirObjectives) {
  SystemConfig config = Example(SystemObjective::kWeights);
  config.memory_weight = 1;
  EXPECT_EQ(OptimizeSystem(config)->plan.bytes,
            OptimizeSystem(Example(SystemObjective::kMemory))->plan.bytes);
}

TEST(System, ALimitThatNothingMeetsIsNamed) {
  SystemConfig config = Example(SystemObjective::kThroughput);
  config.step_ms = 1e-6;
  EXPECT_THAT(OptimizeSystem(config).error().ToString(), HasSubstr("limits.step_ms"));
}

TEST(SystemMeasure, TheJobTriesThePlanOnTopOfTheRunOfToday) {
  SystemConfig config = Example(SystemObjective::kThroughput);
  const SystemResult plan = OptimizeSystem(config).value();
  EXPECT_THAT(MeasureJob(config, plan, "out").error().ToString(), HasSubstr("apply.program"));
  config.program = "train.py";
  const Json job = MeasureJob(config, plan, "out").value();
  EXPECT_EQ(job["gpus"], 2);
  EXPECT_EQ(job["variants"][0]["settings"]["micro_batch_size"], 4);
  EXPECT_EQ(job["references"][0]["settings"]["compile"], "model");
  EXPECT_EQ(job["changes"].back()["settings"]["micro_batch_size"], 8);
  config.batch = 7;
  EXPECT_THAT(MeasureJob(config, plan, "out").error().ToString(), HasSubstr("training.batch"));
}

TEST(SystemMeasure, SharesAreThoseOfKeptChanges) {
  const Json written = ParseJson(R"({"results": {
    "eager + DDP": {"final_ms_a_sample": 4},
    "b": {"before_ms_a_sample": 4, "ms_a_sample": 2, "kept": true},
    "a": {"before_ms_a_sample": 2, "ms_a_sample": 3, "kept": false},
    "c": {"before_ms_a_sample": 2, "ms_a_sample": 1, "kept": true, "best": true,
          "final_ms_a_sample": 1, "settings": {"compile": "blocks"}},
    "d": {"failed": "no such thing\nat all"},
    "compiled + DDP": {"final_ms_a_sample": 2}}})")
                           .value();
  const SystemMeasurement found = ReadMeasurement(written, 2).value();
  ASSERT_EQ(found.changes.size(), 4u);
  EXPECT_EQ(found.changes[0].name, "b");
  EXPECT_NEAR(found.changes[0].share, 0.5, 1e-9);
  EXPECT_EQ(found.changes[1].share, 0);
  EXPECT_EQ(found.best, 2000);
  EXPECT_EQ(found.compiled, 1000);
  const std::string text = TextOf(found);
  EXPECT_THAT(text, HasSubstr("4.00 times eager, 2.00 times torch.compile"));
  EXPECT_THAT(text, HasSubstr("not measured: no such thing"));
  EXPECT_EQ(ToJson(found)["changes"].size(), 4u);
  EXPECT_FALSE(ReadMeasurement(Json::array(), 2));
  EXPECT_THAT(
      ReadMeasurement(ParseJson(R"({"results": {"eager + DDP": {"failed": "no GPU"}}})").value(), 2)
          .error()
          .ToString(),
      HasSubstr("no GPU"));
}

TEST(System, TextPageAndJsonTellTheSameStory) {
  SystemResult result = OptimizeSystem(Example(SystemObjective::kLatency)).value();
  result.notes.emplace_back("<script>alert(1)</script>");
  const std::string text = TextOf(result), page = PageOf(result);
  const Json json = ToJson(result);
  for (const SystemStep& step : result.steps) {
    EXPECT_THAT(text, HasSubstr(step.name));
    EXPECT_THAT(page, HasSubstr(step.name));
  }
  EXPECT_THAT(page, testing::Not(HasSubstr("<script>")));
  EXPECT_EQ(json["steps"].size(), result.steps.size());
  EXPECT_EQ(json["changes"].size(), result.changes.size());
  EXPECT_THAT(text, HasSubstr("predicted"));
  EXPECT_THAT(SystemKeysText(), HasSubstr("training.largest_batch"));
}

}  // namespace
}  // namespace atunner::jobs
