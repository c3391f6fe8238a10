// The command line end to end, without a GPU: predicted runs, resuming, killing.
#include "tests/cli/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "atunner/base/files.h"
#include "atunner/base/random.h"
#include "atunner/model/json.h"
#include "atunner/store/store.h"

namespace atunner {
namespace {

using testing::HasSubstr;

class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    if (RunShell(home(), "$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") == std::string::npos)
      GTEST_SKIP() << "NVRTC is not installed";
  }
  std::string home() const { return dir_.path().string(); }
  Outcome Run(const std::string& shell) { return RunShell(home(), shell); }
  TemporaryDirectory dir_;
};

constexpr const char* kOptimize =
    "$A optimize --operator softmax --input-shape 64,512 --target-gpu A100 --virtual --seed 3";

TEST_F(CommandLine, OptimizePredictsAndWritesAnArtifact) {
  const Outcome outcome = Run(std::string(kOptimize) + " --budget 12 --json --out best");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = ParseJson(outcome.out).value();
  EXPECT_EQ(json["evidence"], "predicted");
  EXPECT_EQ(json["trials"], 12);
  EXPECT_FALSE(json["best"]["estimate"].is_null());
  EXPECT_TRUE(json["best"]["measurement"].is_null()) << "what is predicted is never called measured";
  for (const char* file : {"kernel.cu", "kernel.ptx", "kernel.cubin", "manifest.json", "report.md"})
    EXPECT_TRUE(std::filesystem::exists(home() + "/best/" + file)) << file;
  EXPECT_THAT(ReadFile(home() + "/best/report.md").value(), HasSubstr("**predicted**"));
  EXPECT_THAT(Run("$A history").out, HasSubstr("finished"));
  EXPECT_THAT(Run("$A export last").out, HasSubstr("predicted_ns"));
  const std::string csv = Run("$A export last --format csv").out;
  EXPECT_EQ(std::ranges::count(csv, '\n'), 13);
}

TEST_F(CommandLine, TheSameCommandGoesOnWhereItEnded) {
  const Json first = ParseJson(Run(std::string(kOptimize) + " --budget 6 --json").out).value();
  const Json second = ParseJson(Run(std::string(kOptimize) + " --budget 10 --json").out).value();
  EXPECT_EQ(first["run"], second["run"]);
  EXPECT_EQ(second["trials"], 10);
  const Json other = ParseJson(Run("$A optimize --operator softmax --input-shape 64,512 --target-gpu A100 --virtual "
                                   "--seed 4 --budget 3 --json")
                                   .out)
                         .value();
  EXPECT_NE(other["run"], first["run"]);
}

TEST_F(CommandLine, TheSameSeedMakesTheSameChoice) {
  const Json first = ParseJson(Run(std::string(kOptimize) + " --budget 10 --json --store a.db").out).value();
  const Json second = ParseJson(Run(std::string(kOptimize) + " --budget 10 --json --store b.db").out).value();
  EXPECT_EQ(first["best_configuration"], second["best_configuration"]);
}

TEST_F(CommandLine, KilledRunsLoseAndRepeatNothing) {
  Random random(23);
  std::set<std::string> known;
  for (int kill = 0; kill < 50; ++kill) {
    const double seconds = 0.3 + 0.9 * random.Uniform();
    Run("timeout -s KILL " + std::to_string(seconds) + " " + std::string(kOptimize) + " --budget 100000 --quiet");
    auto store = Store::Open(home() + "/data/atunner/atunner.db");
    if (!store) continue;  // killed before the store was made
    const auto run = (*store)->FindRun("last");
    if (!run) continue;
    std::set<std::string> now;
    const std::vector<Trial> trials = (*store)->Trials(run->id).value();
    for (const Trial& trial : trials) {
      EXPECT_TRUE(now.insert(ToJson(trial.configuration).dump()).second) << "repeated";
    }
    EXPECT_TRUE(std::ranges::includes(now, known)) << "a finished trial was lost";
    known = now;
  }
  EXPECT_GT(known.size(), 10u);
}

TEST_F(CommandLine, CtrlCEndsWithWhatWasFound) {
  const Outcome outcome = Run("timeout -s INT 4 " + std::string(kOptimize) + " --budget 100000 --json --out best");
  const auto json = ParseJson(outcome.out);
  ASSERT_TRUE(json.has_value()) << outcome.err;
  EXPECT_EQ((*json)["stop_reason"], "stopped by the user");
  EXPECT_TRUE(std::filesystem::exists(home() + "/best/manifest.json"));
}

}  // namespace
}  // namespace atunner
