// Every example in examples/kernels tunes on the virtual GPU as its user would tune it, and every
// configuration that is tried computes the right result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "atunner/store/store.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

constexpr int kTrials = 3;

Path Folder() { return Path(ATUNNER_SOURCE_DIR) / "examples/kernels"; }

/// Described kernels by their description; sources that nothing describes as they are.
std::vector<std::string> Examples() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    const Path file = entry.path();
    const auto described = [&](const char* kind) {
      return std::filesystem::exists(Path(file).replace_extension(kind));
    };
    const bool bare = file.extension() == ".cu" && !described(".json") && !described(".toml");
    if (bare || file.extension() == ".json" || file.extension() == ".toml")
      names.push_back(file.filename().string());
  }
  std::ranges::sort(names);
  return names;
}

class Tuning : public testing::Test {
 protected:
  void SetUp() override {
    if (Run("$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") == std::string::npos)
      GTEST_SKIP() << "NVRTC is not installed";
  }
  Outcome Run(const std::string& shell) { return RunShell(dir_.path().string(), shell); }
  TemporaryDirectory dir_;
};

class Example : public Tuning, public testing::WithParamInterface<std::string> {};

TEST_P(Example, TunesOnTheVirtualGpu) {
  const std::string file = (Folder() / GetParam()).string();
  const bool bare = file.ends_with(".cu");
  const Outcome tuned = Run(
      (bare ? "$A hardware-optimize --auto-tune --source " : "$A tune ") + file +
      " --target-gpu A100 --virtual --seed 7 --json --store runs.db --out best --budget " +
      std::to_string(kTrials));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err << tuned.out;
  const auto json = ParseJson(tuned.out);
  ASSERT_TRUE(json) << tuned.out;
  EXPECT_EQ((*json)["evidence"], "predicted");
  EXPECT_THAT((*json)["best"]["verdict"]["kind"], testing::AnyOf("correct", "sampled"));

  const auto store = Store::Open(dir_.path() / "runs.db");
  ASSERT_TRUE(store) << store.error().ToString();
  const auto run = (*store)->FindRun("last");
  ASSERT_TRUE(run) << run.error().ToString();
  const auto trials = (*store)->Trials(run->id);
  ASSERT_TRUE(trials) << trials.error().ToString();
  EXPECT_GT(trials->size(), 1u);
  for (const Trial& trial : *trials) EXPECT_TRUE(trial.verdict.passed()) << trial.verdict.reason;
}

INSTANTIATE_TEST_SUITE_P(All, Example, testing::ValuesIn(Examples()), [](const auto& each) {
  std::string name = each.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

/// Everything that a T1 file can pass, in a source with host code; the data of one argument lies in
/// a file.
class T1Features : public Tuning {
 protected:
  void SetUp() override {
    Tuning::SetUp();
    for (const char* name : {"features.cu", "features.json"}) {
      std::filesystem::copy_file(Path(ATUNNER_SOURCE_DIR) / "tests/examples/t1_features" / name,
                                 dir_.path() / name);
    }
  }
  void WriteParticles(size_t count, float y = 1.0f) {
    struct Particle {
      float x, y;
      int32_t kind, spare;
    };
    std::string bytes;
    for (size_t i = 0; i < count; ++i) {
      const Particle one = {static_cast<float>(i) * 0.5f, y, static_cast<int32_t>(i % 4), 0};
      bytes.append(reinterpret_cast<const char*>(&one), sizeof one);
    }
    ASSERT_TRUE(WriteFileAtomic(dir_.path() / "particles.bin", bytes));
  }
  Outcome Tune() {
    return Run("$A tune features.json --target-gpu A100 --virtual --json --out best --budget 3");
  }
};

TEST_F(T1Features, AreAllExecuted) {
  WriteParticles(1000);
  const Outcome tuned = Tune();
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err << tuned.out;
  EXPECT_EQ((*ParseJson(tuned.out))["best"]["verdict"]["kind"], "correct");
}

TEST_F(T1Features, OtherDataIsAnotherRun) {
  WriteParticles(1000);
  const auto first = ParseJson(Tune().out);
  const auto again = ParseJson(Tune().out);
  WriteParticles(1000, 2.0f);
  const auto other = ParseJson(Tune().out);
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ((*first)["run"], (*again)["run"]);
  EXPECT_NE((*first)["run"], (*other)["run"]);
}

TEST_F(T1Features, AFileOfAnotherSizeIsRefused) {
  EXPECT_EQ(Tune().exit_code, 2);
  WriteParticles(999);
  const Outcome tuned = Tune();
  EXPECT_EQ(tuned.exit_code, 2);
  EXPECT_THAT(tuned.out,
              testing::HasSubstr("argument 'particles' has 16000 bytes, the file 15984"));
}

}  // namespace
}  // namespace atunner
