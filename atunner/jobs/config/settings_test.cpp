#include "atunner/jobs/config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace atunner::jobs {
namespace {

using testing::HasSubstr;

class Settings : public testing::Test {
 protected:
  void User(const std::string& text) { ASSERT_TRUE(WriteFileAtomic(sources().user_file, text)); }
  void Project(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(sources().project_file, text));
  }
  SettingSources sources() const {
    return {folder_.path() / "config.toml", folder_.path() / "atunner.toml",
            [this](const std::string& name) -> std::optional<std::string> {
              const auto found = environment_.find(name);
              if (found == environment_.end()) return std::nullopt;
              return found->second;
            }};
  }
  /// "value from source"
  std::string Of(const std::string& key) const {
    const auto settings = LoadSettings(sources());
    if (!settings) return settings.error().ToString();
    const auto found = std::ranges::find(*settings, key, &Setting::key);
    return found == settings->end() ? "none" : found->value + " from " + found->source;
  }

  TemporaryDirectory folder_;
  std::map<std::string, std::string> environment_;
};

TEST_F(Settings, AreBuiltInWithoutFiles) {
  EXPECT_EQ(Of("target_gpu"), "auto from built-in");
  EXPECT_EQ(Of("budget"), "60 trials from built-in");
}

TEST_F(Settings, LaterPlacesWin) {
  User("budget = '5m'\ntarget_gpu = 'A100'\nstrategy = 'random'\n");
  Project("target_gpu = 'H100'\nstrategy = 'bayes'\n");
  environment_["ATUNNER_STRATEGY"] = "auto";
  EXPECT_EQ(Of("budget"), "5m from " + sources().user_file.string());
  EXPECT_EQ(Of("target_gpu"), "H100 from " + sources().project_file.string());
  EXPECT_EQ(Of("strategy"), "auto from environment ATUNNER_STRATEGY");
}

TEST_F(Settings, MayBeNumbers) {
  User("budget = 200\ncompile_timeout = 2.5\nseed = 7\n");
  EXPECT_THAT(Of("budget"), testing::StartsWith("200 from"));
  EXPECT_THAT(Of("compile_timeout"), testing::StartsWith("2.5 from"));
  EXPECT_THAT(Of("seed"), testing::StartsWith("7 from"));
}

TEST_F(Settings, NamesAllThatIsWrongInOneMessage) {
  User("bugdet = '5m'\nseed = 'seven'\n");
  Project("target_gpu = 100\n");
  const std::string message = Of("budget");
  EXPECT_THAT(message, HasSubstr("config.toml:1: unknown key 'bugdet', did you mean 'budget'?"));
  EXPECT_THAT(message, HasSubstr("config.toml:2: 'seed' must be an integer"));
  EXPECT_THAT(message, HasSubstr("atunner.toml:1: 'target_gpu' must be a string"));
}

TEST_F(Settings, NamesTheLineOfBrokenToml) {
  User("budget = '5m'\ntarget_gpu = \n");
  EXPECT_THAT(Of("budget"), HasSubstr("config.toml:2: "));
}

}  // namespace
}  // namespace atunner::jobs
