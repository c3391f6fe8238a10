// The classifier on two kernels for each bottleneck; bench/classifier.py takes all. The label is
// proved by removing the cause: the other kernel must then be predicted faster.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/compile/shared_compiler_test.h"
#include "atunner/device/profiles.h"
#include "atunner/jobs/evidence/explain.h"
#include "atunner/jobs/evidence/profile.h"
#include "atunner/jobs/requests/user_sources.h"

namespace atunner::jobs {
namespace {

/// `NAME` of a file shows the bottleneck after which the file is named; `NAME_mended` does not.
struct Pair {
  std::string label, file, kernel;
};

std::vector<Pair> Pairs() {
  std::vector<Pair> pairs;
  for (const auto& entry :
       std::filesystem::directory_iterator(Path(ATUNNER_SOURCE_DIR) / "bench/classifier")) {
    std::string label = entry.path().stem().string();
    std::ranges::replace(label, '_', '-');
    const std::string text = ReadFile(entry.path(), 1 << 20).value();
    static const std::regex kTwin("(\\w+)_mended<<<");
    std::sregex_iterator match(text.begin(), text.end(), kTwin);
    for (int i = 0; i < 2 && match != std::sregex_iterator(); ++i, ++match)
      pairs.push_back({label, entry.path().string(), (*match)[1]});
  }
  std::ranges::sort(pairs, {}, [](const Pair& one) { return std::tie(one.file, one.kernel); });
  return pairs;
}

class Classifier : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    auto made = MakeSharedCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
  }

  Result<LaunchProfile> Profiled(const std::string& file, const std::string& name) {
    SourceOptions options;
    options.kernel = name;
    ATUNNER_TRY(UserKernel kernel, ReadUserKernel(file, options));
    ATUNNER_TRY(const auto schedule, MakeUserTemplate(kernel));
    ATUNNER_TRY(const RenderedKernel rendered, schedule->Render(schedule->Default()));
    Target target;
    ATUNNER_TRY(target.profile, FindProfile("A100"));
    target.calibration = Calibration::Expected(target.profile);
    ATUNNER_TRY(CompileOutcome outcome,
                compiler_->Compile({rendered.source, {name}, target.profile.Arch()}));
    if (!outcome.ok()) return Invalid(outcome.error);
    ATUNNER_TRY(
        auto launches,
        ProfileLaunches(schedule->spec(), {*std::move(outcome.module), rendered.plan, {}}, target));
    return launches.front();
  }

  std::unique_ptr<Compiler> compiler_;
};

TEST_P(Classifier, NamesTheCauseThatCostsTime) {
  const Pair& pair = GetParam();
  const auto with = Profiled(pair.file, pair.kernel);
  ASSERT_TRUE(with) << with.error().ToString();
  const evidence::Finding& finding = with->findings.front();
  EXPECT_EQ(evidence::Name(finding.bottleneck), pair.label) << finding.evidence;
  const auto without = Profiled(pair.file, pair.kernel + "_mended");
  ASSERT_TRUE(without) << without.error().ToString();
  const double gain = with->estimate.time_ns / without->estimate.time_ns;
  EXPECT_GT(gain, 1.1) << with->estimate.time_ns << " to " << without->estimate.time_ns;
  RecordProperty("expected", fmt::format("{:.2f}", finding.gain.value_or(0)));
  RecordProperty("gain", fmt::format("{:.2f}", gain));
}

INSTANTIATE_TEST_SUITE_P(Kernels, Classifier, testing::ValuesIn(Pairs()), [](const auto& one) {
  return one.param.kernel + "_" + std::to_string(one.index);
});

}  // namespace
}  // namespace atunner::jobs
