// PyTorch programs, end to end on the virtual GPU. tests/torch/write_models.py wrote the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;

const std::string kModels = ATUNNER_SOURCE_DIR "/tests/data/models/";

class Models : public testing::Test {
 protected:
  std::string home() const { return dir_.path().string(); }
  Json Described(const std::string& file) {
    const Outcome shown = RunShell(home(), "$A graph " + file + " --json");
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    return ParseJson(shown.out).value();
  }

  TemporaryDirectory dir_;
};

TEST_F(Models, AGraphIsDescribed) {
  const Json mlp = Described(kModels + "mlp.json");
  EXPECT_EQ(mlp["operators"]["aten.addmm.default"], 2);
  EXPECT_EQ(mlp["inputs"][0]["kind"], "user");
  EXPECT_EQ(mlp["inputs"][1]["qualified_name"], "0.weight");
  EXPECT_EQ(mlp["outputs"][0]["type"], "float32[16, 32]");
  // Two products of 16 rows: 2 · 16 · (64 · 128 + 128 · 32), and what follows them.
  EXPECT_GE(mlp["flops"].get<double>(), 2.0 * 16 * (64 * 128 + 128 * 32));
  EXPECT_FALSE(mlp["parts"].empty());
}

TEST_F(Models, AGraphIsDrawn) {
  const Outcome drawn = RunShell(home(), "$A graph " + kModels + "mlp.json --dot mlp.dot");
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("2 × aten.addmm.default"));
  const std::string dot = ReadFile(dir_.path() / "mlp.dot").value();
  EXPECT_THAT(dot, HasSubstr("digraph mlp {"));
  EXPECT_THAT(dot, HasSubstr("contract"));
}

TEST_F(Models, FusionIsExplained) {
  const std::string model = kModels + "conv_bn_relu.json";
  const Outcome shown = RunShell(home(), "$A fusion " + model + " --target-gpu A100 --explain");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("in 1 group"));
  EXPECT_THAT(shown.out, HasSubstr("group 1: convolution"));
  const Outcome both = RunShell(home(), "$A fusion " + model + " --graph " + model);
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("one graph at a time"));
  EXPECT_THAT(RunShell(home(), "$A fusion").err, HasSubstr("no graph is given"));
}

TEST_F(Models, TrainingStepsArePlannedAndPredicted) {
  const std::string step = ATUNNER_SOURCE_DIR "/atunner/fusion/testdata/step_mlp_adam.json";
  const Outcome shown = RunShell(
      home(), "$A fusion --training-graph " + step + " --mode training --json --dot step.dot");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const Json plan = ParseJson(shown.out).value();
  EXPECT_GT(plan["memory"]["peak_bytes"], plan["memory"]["persistent_bytes"]);
  EXPECT_THAT(ReadFile(dir_.path() / "step.dot").value(), HasSubstr("rank=same"));
  const Outcome predicted = RunShell(
      home(), "$A predict --training-graph " + step + " --target-gpu H200 --json");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_GT(ParseJson(predicted.out).value()["predicted_ns"], 0);
  const Outcome wrong = RunShell(home(), "$A fusion --mode training " + kModels + "mlp.json");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("capture_step"));
  const Outcome fixed = RunShell(
      home(), "$A predict --training-graph " + step + " --target-gpu H200 --batch 8,16");
  EXPECT_EQ(fixed.exit_code, 2);
  EXPECT_THAT(fixed.err, HasSubstr("make_step"));
}

TEST_F(Models, TrainingStepsOfPythonFilesNeedAPython) {
  const Outcome gone = RunShell(home(), "$A fusion --training-graph gone.py:make_step");
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_THAT(gone.err, HasSubstr("no such file"));
  const Outcome without = RunShell(
      home(), "touch train.py; ATUNNER_PYTHON=/nowhere/python $A fusion train.py");
  EXPECT_EQ(without.exit_code, 3);
  EXPECT_THAT(without.err, HasSubstr("$ATUNNER_PYTHON"));
}

TEST_F(Models, ModelsAreTuned) {
  if (RunShell(home(), "$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") ==
      std::string::npos)
    GTEST_SKIP() << "NVRTC is not installed";
  const std::string options = " --target-gpu A100 --virtual --first-guess --json";
  for (const char* what : {"--graph $M/mlp.json", "$M/conv_bn_relu.json", "$M/attention.json"}) {
    SCOPED_TRACE(what);
    const Outcome tuned = RunShell(home(),
                                   "M=" + kModels + "; $A optimize " + std::string(what) + options);
    EXPECT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
    const Json plan = ParseJson(tuned.out).value_or(Json::object());
    ASSERT_TRUE(plan.contains("plan")) << tuned.out;
    EXPECT_TRUE(Exists(Path(plan["plan"].get<std::string>()) / "plan.json"));
    EXPECT_EQ(plan["weight_bytes"], 0) << "these models have no file of weights";
    EXPECT_FALSE(plan["kernels"].empty());
    const std::string folder = plan["plan"];
    EXPECT_THAT(RunShell(home(), "$A show " + folder).out, HasSubstr(" -> "));
  }
}

TEST_F(Models, APlansKernelsAreVerifiedAgain) {
  if (RunShell(home(), "$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") ==
      std::string::npos)
    GTEST_SKIP() << "NVRTC is not installed";
  const Outcome made = RunShell(home(), "$A optimize " + kModels +
                                            "mlp.json --target-gpu A100 --virtual --first-guess "
                                            "--quiet --out plan");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("launches of"));
  const Outcome verified = RunShell(home(), "$A verify plan --json");
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const Json json = ParseJson(verified.out).value();
  EXPECT_EQ(json["passed"], true);
  EXPECT_EQ(json["kernels"].size(), 2u);
}

TEST_F(Models, UnknownOperatorsAreShown) {
  std::string text = ReadFile(kModels + "mlp.json").value();
  const std::string known = "aten.gelu.default";
  text.replace(text.find(known), known.size(), "mine.mystery.default");
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "mystery.json", text));
  const Json model = Described("mystery.json");
  EXPECT_EQ(model["segments"].size(), 2u);
  EXPECT_EQ(model["externs"][0]["target"], "mine.mystery.default");
}

TEST_F(Models, MistakesAreOneMessage) {
  ASSERT_TRUE(WriteFileAtomic(home() + "/broken.pt2", "PK\x03\x04 and no more"));
  const Outcome broken = RunShell(home(), "$A optimize broken.pt2");
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.err, HasSubstr("is the file truncated?"));
  const Outcome missing = RunShell(home(), "$A graph nothing.pt2");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("nothing.pt2"));
  const std::string dim = "$A optimize " + kModels + "mlp.json --dim B=3 --target-gpu A100";
  EXPECT_THAT(RunShell(home(), dim).err, HasSubstr("--dim"));
  EXPECT_THAT(RunShell(home(), "$A optimize --operator sum --input-shape 4,4 --first-guess").err,
              HasSubstr("--first-guess"));
  EXPECT_THAT(RunShell(home(), "$A optimize --operator sum --input-shape 4,4 --dim B=3").err,
              HasSubstr("--graph"));
}

}  // namespace
}  // namespace atunner
