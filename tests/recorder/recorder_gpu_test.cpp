// Programs that nvcc builds, under the recorder on a real GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/files.h"
#include "atunner/capture/capture_reader.h"
#include "atunner/capture/capture_writer.h"
#include "atunner/capture/replacement.h"
#include "faces/recorder/order.h"
#include "tests/cli/process.h"

namespace atunner::recorder {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kKernel = "_Z5ScalePfPKffi";
const std::string kSources = ATUNNER_SOURCE_DIR "/tests/recorder/";

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome outcome = Run(
        "nvcc --version > version && nvidia-smi -i 0 --format=csv,noheader "
        "--query-gpu=compute_cap | tr -d .");
    if (outcome.exit_code != 0 || outcome.out.empty()) GTEST_SKIP() << "no GPU, or no nvcc";
    arch_ = "sm_" + outcome.out.substr(0, outcome.out.find('\n'));
  }
  Outcome Run(const std::string& shell) { return RunShell(dir_.path().string(), shell); }
  void Build(const std::string& flags) {
    const Outcome built = Run("nvcc -std=c++17 -arch=" + arch_ + " -lineinfo " + flags +
                              " -o app " + kSources + "gpu_program.cu");
    ASSERT_EQ(built.exit_code, 0) << built.err;
  }
  Outcome Under(const std::string& variable, const Json& order, const std::string& command) {
    return Run(variable + "='" + DumpJson(order) + "' LD_PRELOAD=" + ATUNNER_RECORDER + " " +
               command);
  }
  Path folder() const { return dir_.path() / "app.capture"; }
  Outcome Record(const std::string& command, size_t launches_of_kernel = 4) {
    EXPECT_TRUE(capture::BeginCapture(folder(), {"./app", {}, "GPU", Evidence::kMeasured}));
    RecordOrder order{folder().string(), {}};
    order.limits.launches_of_kernel = launches_of_kernel;
    return Under(kRecordVariable, ToJson(order), command);
  }
  capture::Capture Read() const { return capture::ReadCapture(folder()).value(); }

  /// A tuned Scale for a grid of 256 and blocks of 256.
  void BuildTuned(const std::string& flags) {
    const Path best = dir_.path() / "best";
    ASSERT_TRUE(MakeDirectories(best));
    const Outcome built = Run("nvcc -cubin -arch=" + arch_ + " " + flags +
                              " -o best/kernel.cubin " + kSources + "gpu_tuned.cu");
    ASSERT_EQ(built.exit_code, 0) << built.err;
    const capture::Replacement replacement{kKernel, "",      "kernel.cubin",
                                           arch_,   kKernel, {{{{256}, {256}}, {{128}, {256}}}}};
    ASSERT_TRUE(capture::WriteReplacement(best, replacement));
  }
  Outcome Apply(const std::string& command) {
    const Path report = dir_.path() / "report";
    std::filesystem::remove(report);
    Outcome outcome = Under(kApplyVariable,
                            ToJson(ApplyOrder{{(dir_.path() / "best").string()}, report.string()}),
                            command);
    report_ = ReadAppliedReport(ReadFile(report).value_or("")).value();
    return outcome;
  }

  TemporaryDirectory dir_;
  AppliedReport report_;
  std::string arch_;
};

/// Launches of a kernel in all groups.
uint64_t LaunchesOf(const capture::Capture& captured, const std::string& name) {
  uint64_t launches = 0;
  for (const capture::LaunchGroup& group : captured.groups) {
    if (captured.kernels[group.kernel].name == name) launches += group.launches;
  }
  return launches;
}

TEST_F(OnGpu, ProgramsOfTheRuntimeAreRecordedAndReplaced) {
  for (const std::string flags :
       {"", "-cudart shared", "--default-stream per-thread", "-rdc=true", "--compress-mode=size"}) {
    SCOPED_TRACE(flags);
    Build(flags);
    const std::string expected = Run("./app").out;
    ASSERT_THAT(expected, HasSubstr("visits 64"));
    const Outcome recorded = Record("./app");
    EXPECT_EQ(recorded.out, expected) << recorded.err;
    EXPECT_EQ(recorded.err, "");
    const capture::Capture captured = Read();
    EXPECT_THAT(captured.notes, IsEmpty());
    EXPECT_EQ(LaunchesOf(captured, kKernel), 11u);
    EXPECT_EQ(captured.launches.size(), 6u);
    for (const capture::CapturedLaunch& launch : captured.launches) {
      EXPECT_EQ(launch.left_out, "");
      EXPECT_GT(launch.seconds, 0);
      EXPECT_FALSE(launch.buffers.empty());
      EXPECT_EQ(launch.symbols.size(), 2u);
    }
    for (const capture::CapturedModule& module : captured.modules) EXPECT_NE(module.ptx, "");
    BuildTuned("");
    const Outcome applied = Apply("./app");
    EXPECT_EQ(applied.out, expected) << applied.err;
    ASSERT_EQ(report_.launches.size(), 1u);
    EXPECT_EQ(report_.launches[0].replaced, 10u) << report_.launches[0].reason;
    EXPECT_EQ(report_.launches[0].verdict, Verdict::kEqual);
  }
}

TEST_F(OnGpu, MemoryIsFoundThroughPointersAndStructures) {
  Build("");
  Record("./app");
  const capture::Capture captured = Read();
  for (const capture::CapturedLaunch& launch : captured.launches) {
    const std::string& name = captured.kernels[launch.kernel].readable;
    if (name.starts_with("void Join<float>")) {
      EXPECT_EQ(launch.buffers.size(), 3u);
      EXPECT_EQ(launch.parameters.at(0).pointers.size(), 3u);
    }
    if (name.starts_with("Follow")) EXPECT_EQ(launch.buffers.size(), 3u);
    if (name.starts_with("Visit")) {
      EXPECT_TRUE(launch.configuration.cooperative);
      EXPECT_NE(launch.symbols.at(0).after, "") << launch.symbols[0].name;
    }
  }
}

TEST_F(OnGpu, KernelsOfGraphsAreRecordedAndReplaced) {
  Build("");
  const std::string expected = Run("./app graphs").out;
  ASSERT_THAT(expected, HasSubstr("visits 0"));
  const Outcome recorded = Record("./app graphs");
  EXPECT_EQ(recorded.out, expected) << recorded.err;
  const capture::Capture captured = Read();
  EXPECT_THAT(captured.notes, IsEmpty());
  EXPECT_EQ(LaunchesOf(captured, kKernel), 41u) << "one launch, ten of two nodes, twice";
  EXPECT_EQ(captured.launches.size(), 6u) << "Scale, Join, and Follow, which writes nothing, often";
  for (const capture::CapturedLaunch& launch : captured.launches) {
    EXPECT_EQ(launch.left_out, "");
    EXPECT_GT(launch.seconds, 0);
    if (captured.kernels[launch.kernel].readable.starts_with("Follow")) continue;
    EXPECT_FALSE(launch.buffers.empty());
  }
  BuildTuned("");
  const Outcome applied = Apply("./app graphs");
  EXPECT_EQ(applied.out, expected) << applied.err;
  ASSERT_EQ(report_.launches.size(), 1u);
  EXPECT_EQ(report_.launches[0].replaced, 41u) << report_.launches[0].reason;
  EXPECT_EQ(report_.launches[0].in_graphs, 0u);
}

TEST_F(OnGpu, AGraphWithAnAllocationKeepsItsKernels) {
  Build("");
  const std::string expected = Run("./app pools").out;
  EXPECT_EQ(Record("./app pools").out, expected);
  const capture::Capture captured = Read();
  EXPECT_EQ(LaunchesOf(captured, kKernel), 10u);
  EXPECT_THAT(captured.notes, Contains(HasSubstr("its graph has an allocation")));
  BuildTuned("");
  EXPECT_EQ(Apply("./app pools").out, expected);
  EXPECT_EQ(report_.launches.at(0).replaced, 0u);
  EXPECT_EQ(report_.launches[0].in_graphs, 10u);
  EXPECT_THAT(report_.launches[0].reason, HasSubstr("cannot be copied"));
}

TEST_F(OnGpu, ADeviceThatIsReset) {
  Build("");
  const std::string expected = Run("./app reset").out;
  EXPECT_EQ(Record("./app reset").out, expected);
  EXPECT_EQ(LaunchesOf(Read(), kKernel), 2u);
  BuildTuned("");
  EXPECT_EQ(Apply("./app reset").out, expected);
  EXPECT_EQ(report_.launches.at(0).replaced, 2u) << report_.launches[0].reason;
}

TEST_F(OnGpu, WrongResultsPutTheOriginalBack) {
  Build("");
  const std::string expected = Run("./app").out;
  BuildTuned("-DWRONG=1");
  EXPECT_EQ(Apply("./app").out, expected);
  ASSERT_EQ(report_.launches.size(), 1u);
  EXPECT_EQ(report_.launches[0].verdict, Verdict::kDifferent);
  EXPECT_EQ(report_.launches[0].replaced, 0u);
}

TEST_F(OnGpu, TheDriverInterface) {
  const std::string program = ATUNNER_DRIVER_PROGRAM;
  const std::string expected = Run(program + " 5").out;
  EXPECT_EQ(Record(program + " 5").out, expected);
  const capture::Capture captured = Read();
  EXPECT_EQ(captured.groups.at(1).launches, 5u);
  EXPECT_EQ(captured.launches.at(0).left_out, "");
}

double SecondsOf(const Outcome& outcome) {
  return std::stod(outcome.err.substr(outcome.err.find("seconds") + 8));
}

TEST_F(OnGpu, RecordingTakesAtMostTwiceTheTime) {
  Build("-O2");
  constexpr const char* kCommand = "./app many 100000";
  double plain = 1e9, recorded = 1e9, applied = 1e9;
  for (int i = 0; i < 3; ++i) plain = std::min(plain, SecondsOf(Run(kCommand)));
  for (int i = 0; i < 3; ++i) recorded = std::min(recorded, SecondsOf(Record(kCommand, 20)));
  const capture::Capture captured = Read();
  EXPECT_EQ(captured.launches.size(), 20u);
  EXPECT_EQ(LaunchesOf(captured, kKernel), 100001u);
  BuildTuned("");
  for (int i = 0; i < 3; ++i) applied = std::min(applied, SecondsOf(Apply(kCommand)));
  std::printf("100000 launches: %.3f s, recorded with 20 snapshots %.3f s, applied %.3f s\n", plain,
              recorded, applied);
  for (const capture::LaunchGroup& group : captured.groups)
    std::printf("  grid %u: %llu launches, %.2f us each\n", group.configuration.grid.x,
                static_cast<unsigned long long>(group.launches),
                group.seconds / static_cast<double>(group.launches) * 1e6);
  EXPECT_LE(recorded, 2 * plain);
}

}  // namespace
}  // namespace atunner::recorder
