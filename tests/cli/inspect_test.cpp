// Looking inside a job, defaults from files, and text from files on a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;
using testing::Not;

class Inspect : public testing::Test {
 protected:
  Outcome Run(const std::string& shell) { return RunShell(dir_.path().string(), shell); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(dir_.path() / name, text));
  }
  TemporaryDirectory dir_;
};

constexpr const char* kRelu =
    "$A optimize --operator relu --input-shape 1024,64 --target-gpu A100 --virtual";

TEST_F(Inspect, ShowsStagesWithoutASearch) {
  const Outcome shown = Run(std::string(kRelu) +
                            " --dump graph,fused,partition,template,source,plan --stop-after plan");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* text :
       {"=== graph of relu\n", "input a: float32[rows, 64]", "=== fused of relu\n",
        "=== partition of relu\n1 subgraph", "=== template of relu\n", "=== source of relu\n",
        "__global__", "=== plan of relu\n", "\"grid\""})
    EXPECT_THAT(shown.out, HasSubstr(text));
  EXPECT_THAT(shown.out, Not(HasSubstr("artifact:")));
}

TEST_F(Inspect, ShowsOneObjectPerStage) {
  const Outcome shown = Run(std::string(kRelu) + " --json --dump graph,source --stop-after plan");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  std::istringstream lines(shown.out);
  std::vector<std::string> stages;
  for (std::string line; std::getline(lines, line);)
    stages.push_back(ParseJson(line).value()["stage"].get<std::string>());
  EXPECT_THAT(stages, testing::ElementsAre("graph", "source"));
}

TEST_F(Inspect, ListsTheStages) {
  const Outcome wrong = Run(std::string(kRelu) + " --dump garph");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("unknown stage 'garph'"));
  EXPECT_THAT(wrong.err, HasSubstr("graph, fused, partition, template, source, plan, ptx, verify"));
}

TEST_F(Inspect, SettingsComeFromFilesTheEnvironmentAndFlags) {
  Write("config/atunner/config.toml", "target_gpu = 'A100'\nbudget = '5m'\nstrategy = 'random'\n");
  Write("atunner.toml", "budget = 200\n");
  const Outcome shown = Run("ATUNNER_STRATEGY=auto $A config --json");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const Json json = ParseJson(shown.out).value();
  EXPECT_EQ(json["target_gpu"]["value"], "A100");
  EXPECT_THAT(json["target_gpu"]["source"].get<std::string>(), HasSubstr("config.toml"));
  EXPECT_EQ(json["budget"]["value"], "200");
  EXPECT_EQ(json["budget"]["source"], "atunner.toml");
  EXPECT_EQ(json["strategy"]["source"], "environment ATUNNER_STRATEGY");
  EXPECT_EQ(json["seed"]["source"], "built-in");
  // the target is the setting's, and a flag wins over it
  const std::string stop = " --dump plan --stop-after plan --virtual";
  EXPECT_EQ(Run("$A optimize --operator relu --input-shape 8,8" + stop).exit_code, 0);
  const Outcome flag = Run("$A optimize --operator relu --input-shape 8,8 --target-gpu none" +
                           stop);
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.err, HasSubstr("none"));
}

TEST_F(Inspect, WrongSettingsAreOneMessage) {
  Write("atunner.toml", "bugdet = 200\nseed = 'x'\n");
  const Outcome wrong = Run("$A doctor");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("atunner.toml:1: unknown key 'bugdet'"));
  EXPECT_THAT(wrong.err, HasSubstr("atunner.toml:2: 'seed' must be an integer"));
  EXPECT_EQ(Run("$A --help").exit_code, 0);
}

TEST_F(Inspect, AWrongValueNamesItsPlace) {
  Write("atunner.toml", "compile_timeout = -1\n");
  const Outcome wrong = Run(std::string(kRelu) + " --stop-after plan");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("atunner.toml"));
}

TEST_F(Inspect, ControlCharactersOfAManifestDoNotReachTheTerminal) {
  const std::string artifact = std::string(ATUNNER_SOURCE_DIR) + "/tests/data/schema1/softmax";
  const Outcome shown = Run("cp -r " + artifact +
                            " a && chmod -R u+w a && sed -i 's/\"name\": *\"softmax\"/\"name\": "
                            "\"so\\\\u001b[31mftmax\"/' a/manifest.json && $A show a");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, Not(HasSubstr("\033")));
  EXPECT_THAT(shown.out, HasSubstr("so\\x1b[31mftmax for "));
}

}  // namespace
}  // namespace atunner
