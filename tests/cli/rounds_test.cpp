// `optimize --rounds`, `workflow`, `lineage` and `knowledge` as a user calls them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr const char* kOptimize =
    "$A optimize --operator softmax --input-shape 64,256 --target-gpu A100 --virtual "
    "--no-baselines --quiet --rounds 2 --ideas 2 --implementations 1 --keep 0.5";

class Rounds : public testing::Test {
 protected:
  void SetUp() override {
    if (Run("$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") == std::string::npos)
      GTEST_SKIP() << "NVRTC is not installed";
  }
  Outcome Run(const std::string& shell) { return RunShell(dir_.path().string(), shell); }
  Json JsonOf(const std::string& shell) {
    const Outcome outcome = Run(shell);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
    return ParseJson(outcome.out).value_or(Json::object());
  }
  TemporaryDirectory dir_;
};

TEST_F(Rounds, StoryLineageAndFlow) {
  const Outcome outcome = Run(std::string(kOptimize) + " --explain");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  for (const char* part : {"softmax", "Round 1.", "bottleneck", "of the roofline", "r0.0"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  const Json flows = JsonOf("$A workflow list --json");
  ASSERT_EQ(flows.size(), 1u);
  EXPECT_EQ(flows[0]["status"], "finished");
  const Json shown = JsonOf("$A workflow show last --json");
  EXPECT_GE(shown["checkpoints"].size(), 6u);
  EXPECT_GE(JsonOf("$A lineage --json").size(), 1u);
  EXPECT_THAT(Run("$A workflow graph last --svg").out, HasSubstr("</svg>"));
  EXPECT_THAT(Run("$A workflow graph").out, HasSubstr("performance_analysis"));
  const Json again = JsonOf(std::string(kOptimize) + " --json");  // nothing is left to do
  EXPECT_EQ(again["flow"], flows[0]["flow"]);
}

TEST_F(Rounds, AKilledRunGoesOnAndJudgesNothingTwice) {
  Run(std::string(kOptimize) +
      " & job=$!; while ! $A export --format json >/dev/null 2>&1 || "
      "[ $($A export --format csv | wc -l) -lt 3 ]; do kill -0 $job 2>/dev/null || break; "
      "sleep 0.05; done; kill -9 $job; wait $job");
  const Json flows = JsonOf("$A workflow list --json");
  ASSERT_EQ(flows.size(), 1u);
  const Json before = JsonOf("$A export --format json");
  const Outcome resumed = Run("$A workflow resume last --quiet");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err << resumed.out;
  const Json after = JsonOf("$A export --format json");
  ASSERT_GE(after["trials"].size(), before["trials"].size());
  for (size_t i = 0; i < before["trials"].size(); ++i)
    EXPECT_EQ(after["trials"][i]["candidate"], before["trials"][i]["candidate"]);
  std::set<std::string> ids;
  for (const Json& trial : after["trials"])
    EXPECT_TRUE(ids.insert(trial["candidate"].get<std::string>()).second);
  EXPECT_EQ(JsonOf("$A workflow list --json")[0]["status"], "finished");
}

TEST_F(Rounds, WrongUseIsOneMessage) {
  const Outcome rounds = Run(
      "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 "
      "--rounds 1 --keep 3");
  EXPECT_EQ(rounds.exit_code, 2);
  EXPECT_THAT(rounds.err, HasSubstr("keep must be above 0"));
  const Outcome model = Run(
      "$A optimize --operator softmax --input-shape 8,8 --target-gpu A100 "
      "--virtual --rounds 1 --llm nonsense");
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.err, HasSubstr("openai:MODEL"));
  EXPECT_EQ(Run("$A workflow show nowhere").exit_code, 2);
  EXPECT_EQ(Run("$A workflow dance").exit_code, 2);
}

TEST(Knowledge, SearchAddAndExport) {
  const TemporaryDirectory dir;
  const auto run = [&](const std::string& shell) { return RunShell(dir.path().string(), shell); };
  const Outcome found = run("$A knowledge search shared memory bank conflicts");
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("handbook/bank-conflicts"));
  ASSERT_TRUE(WriteFileAtomic(dir.path() / "notes" / "a.md", "# Zebra\nstripes\n").has_value());
  EXPECT_EQ(run("$A knowledge add notes").exit_code, 0);
  EXPECT_THAT(run("$A knowledge search zebra").out, HasSubstr("a.md"));
  EXPECT_EQ(run("$A knowledge search zzzqqq").exit_code, 1);
  EXPECT_EQ(run("$A knowledge add nowhere").exit_code, 2);
  EXPECT_THAT(run("$A knowledge export").out, HasSubstr("\"rules\""));
}

}  // namespace
}  // namespace atunner
