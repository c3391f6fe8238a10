// A program of CUDA's driver interface under the recorder, with the virtual GPU in the place of the
// driver, so that the whole road runs without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/files.h"
#include "atunner/capture/blob_store.h"
#include "atunner/capture/capture_reader.h"
#include "atunner/capture/capture_writer.h"
#include "atunner/capture/replacement.h"
#include "faces/recorder/order.h"
#include "tests/cli/process.h"

namespace atunner::recorder {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kKernel = "_Z5scalePfPKffj";
constexpr const char* kResult = "sum 1000000, blocks ";

class Recorded : public testing::Test {
 protected:
  Recorded() {
    std::filesystem::create_symlink(ATUNNER_VIRTUAL_DRIVER, dir_.path() / "libcuda.so.1");
  }

  Outcome Run(const std::string& variable, const Json& order, const std::string& arguments) {
    return RunShell(dir_.path().string(), "LD_LIBRARY_PATH=" + dir_.path().string() + " " +
                                              variable + "='" + DumpJson(order) +
                                              "' LD_PRELOAD=" + ATUNNER_RECORDER + " " +
                                              ATUNNER_DRIVER_PROGRAM + " " + arguments);
  }
  Path folder() const { return dir_.path() / "app.capture"; }
  Outcome Record(const std::string& arguments, capture::RecordingLimits limits = {}) {
    EXPECT_TRUE(capture::BeginCapture(folder(), {"./app", {}, "A100", Evidence::kMeasured}));
    return Run(kRecordVariable, ToJson(RecordOrder{folder().string(), limits}), arguments);
  }
  capture::Capture Read() const { return capture::ReadCapture(folder()).value(); }

  /// A tuned kernel for launches with blocks of 64: the program's PTX with a text replaced.
  void WriteTuned(const std::string& from, const std::string& to,
                  const capture::Replacement& changed = {}) {
    Record("1");
    std::string ptx =
        capture::BlobStore(capture::BlobsOf(folder())).Get(Read().modules[0].ptx).value();
    capture::Replacement replacement = changed;
    replacement.kernel = kKernel;
    replacement.image = "kernel.ptx";
    replacement.entry = kKernel;
    if (changed.arch.empty()) replacement.arch = "sm_70";
    if (changed.module.empty()) replacement.module = DigestOf(ptx).ToHex();
    if (changed.launches.empty()) replacement.launches = {{{{16}, {64}}, {{16}, {64}}}};
    const size_t at = ptx.find(from);
    ASSERT_NE(at, std::string::npos);
    ptx.replace(at, from.size(), to);
    ASSERT_TRUE(WriteFileAtomic(dir_.path() / "best" / "kernel.ptx", ptx));
    ASSERT_TRUE(capture::WriteReplacement(dir_.path() / "best", replacement));
  }
  Outcome Apply(const std::string& arguments) {
    const Path report = dir_.path() / "report";
    Outcome outcome = Run(kApplyVariable,
                          ToJson(ApplyOrder{{(dir_.path() / "best").string()}, report.string()}),
                          arguments);
    report_ = ReadAppliedReport(ReadFile(report).value_or("")).value();
    return outcome;
  }

  TemporaryDirectory dir_;
  AppliedReport report_;
};

TEST_F(Recorded, LaunchesWithTheirMemory) {
  const Outcome outcome = Record("5");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, std::string(kResult) + "88\n") << outcome.err;
  const capture::Capture captured = Read();
  EXPECT_THAT(captured.notes, IsEmpty());
  ASSERT_THAT(captured.modules, SizeIs(1));
  EXPECT_EQ(captured.modules[0].arch, 70);
  ASSERT_THAT(captured.kernels, SizeIs(1));
  EXPECT_EQ(captured.kernels[0].readable, "scale(float*, float const*, float, unsigned int)");
  ASSERT_THAT(captured.groups, SizeIs(2));
  EXPECT_EQ(captured.groups[1].launches, 5u);
  EXPECT_EQ(captured.groups[1].configuration, (capture::LaunchConfiguration{{16}, {64}}));
  EXPECT_GT(captured.groups[1].seconds, 0);
  ASSERT_THAT(captured.launches, SizeIs(2));
  const capture::CapturedLaunch& first = captured.launches[0];
  EXPECT_EQ(first.left_out, "");
  EXPECT_EQ(first.evidence, Evidence::kMeasured);
  EXPECT_THAT(first.parameters[0].pointers, ElementsAre(capture::CapturedPointer{0, 0, 0}));
  EXPECT_THAT(first.parameters[1].pointers, ElementsAre(capture::CapturedPointer{0, 1, 0}));
  EXPECT_EQ(first.parameters[3].bytes, std::string("\xe8\x03\0\0", 4));
  ASSERT_THAT(first.buffers, SizeIs(2));
  EXPECT_EQ(first.buffers[0].bytes, 4000u);
  EXPECT_NE(first.buffers[0].after, "");
  EXPECT_EQ(first.buffers[1].after, "");
  ASSERT_THAT(first.symbols, SizeIs(2));
  EXPECT_EQ(first.symbols[0].name, "blocks");
  EXPECT_NE(first.symbols[0].after, "");
  EXPECT_EQ(first.symbols[1].after, "");
}

TEST_F(Recorded, ParametersInOneBuffer) {
  EXPECT_EQ(Record("1 packed").out, std::string(kResult) + "24\n");
  const capture::Capture captured = Read();
  ASSERT_THAT(captured.launches, SizeIs(2));
  EXPECT_EQ(captured.launches[0].parameters, captured.launches[1].parameters);
}

TEST_F(Recorded, LaunchesByAFunctionThatDlsymFinds) {
  EXPECT_EQ(Record("1 dlsym").exit_code, 0);
  EXPECT_EQ(Read().groups.at(1).launches, 2u);
}

TEST_F(Recorded, ThreadsLaunchAtTheSameTime) {
  const Outcome outcome = Record("50 threads");
  EXPECT_EQ(outcome.out, std::string(kResult) + "4008\n") << outcome.err;
  EXPECT_EQ(Read().groups.at(1).launches, 250u);
}

TEST_F(Recorded, AProgramThatIsKilledLeavesItsLaunches) {
  EXPECT_EQ(Record("40 killed").exit_code, 137);
  const capture::Capture captured = Read();
  EXPECT_THAT(captured.launches, SizeIs(2));
  ASSERT_THAT(captured.groups, SizeIs(2));
  EXPECT_GE(captured.groups[1].launches, 31u) << "written whenever their number has doubled";
}

TEST_F(Recorded, ChildrenWriteNothing) {
  EXPECT_EQ(Record("3 forks").exit_code, 0);
  EXPECT_EQ(Read().groups.at(1).launches, 3u);
}

TEST_F(Recorded, OnlyTheFirstProcessThatUsesTheGpu) {
  EXPECT_EQ(Record("3 other").exit_code, 0);
  const capture::Capture captured = Read();
  EXPECT_EQ(captured.groups.at(0).configuration.grid.x, 2u);
  EXPECT_THAT(captured.notes, Contains(HasSubstr("another process")));
}

TEST_F(Recorded, AFullFolderIsSaidAndTheProgramGoesOn) {
  const Outcome outcome = Run(kRecordVariable, ToJson(RecordOrder{"/proc/none/app.capture", {}}),
                              "3");
  EXPECT_EQ(outcome.out, std::string(kResult) + "56\n");
  EXPECT_THAT(outcome.err, HasSubstr("atunner: the capture was cut short"));
}

constexpr const char* kSum = "fma.rn.f32 %f4, %f1, %f2, %f3;";

TEST_F(Recorded, ATunedKernelTakesThePlaceOfTheOriginal) {
  // Variables of the module go both ways: `offset` is read, `blocks` is written.
  WriteTuned(kSum, "fma.rn.f32 %f4, %f2, %f1, %f3;");
  for (const std::string how : {"5", "5 packed"}) {
    const Outcome outcome = Apply(how);
    EXPECT_EQ(outcome.out, std::string(kResult) + "88\n") << outcome.err;
    ASSERT_THAT(report_.launches, SizeIs(1));
    EXPECT_EQ(report_.launches[0].verdict, Verdict::kEqual);
    EXPECT_EQ(report_.launches[0].reason, "");
  }
  EXPECT_EQ(report_.launches[0].launches, 10u) << "of two processes";
  Apply("3 forks");
  EXPECT_EQ(report_.launches[0].launches, 13u) << "a child adds nothing";
  EXPECT_EQ(report_.launches[0].replaced, 13u);
}

TEST_F(Recorded, ATunedKernelMayRoundOtherwise) {
  WriteTuned(kSum, std::string(kSum) + " mul.f32 %f4, %f4, 0f3F800010;");
  EXPECT_THAT(Apply("5").out, HasSubstr("sum 1000001.9"));
  ASSERT_THAT(report_.launches, SizeIs(1));
  EXPECT_EQ(report_.launches[0].verdict, Verdict::kWithinTolerance);
  EXPECT_NEAR(report_.launches[0].error, 1.9e-6, 1e-7);
  WriteTuned(kSum, std::string(kSum) + " mul.f32 %f4, %f4, 0f3F800010;", {.tolerance = 1e-7});
  EXPECT_EQ(Apply("5").out, std::string(kResult) + "88\n");
}

TEST_F(Recorded, WrongResultsPutTheOriginalBack) {
  WriteTuned(kSum, std::string(kSum) + " add.f32 %f4, %f4, 0f3F800000;");
  EXPECT_EQ(Apply("5").out, std::string(kResult) + "88\n");
  ASSERT_THAT(report_.launches, SizeIs(1));
  EXPECT_EQ(report_.launches[0].verdict, Verdict::kDifferent);
  EXPECT_EQ(report_.launches[0].launches, 5u);
  EXPECT_EQ(report_.launches[0].replaced, 0u);
  EXPECT_THAT(report_.launches[0].reason, HasSubstr("differ"));
}

TEST_F(Recorded, AVariableThatDiffersIsAWrongResult) {
  WriteTuned(kSum, kSum, {.launches = {{{{16}, {64}}, {{4}, {256}}}}});  // counts fewer blocks
  EXPECT_EQ(Apply("5").out, std::string(kResult) + "88\n");
  EXPECT_EQ(report_.launches.at(0).verdict, Verdict::kDifferent);
}

TEST_F(Recorded, WhatDoesNotFitIsNotUsed) {
  for (const auto& [changed, reason] : std::vector<std::pair<capture::Replacement, std::string>>{
           {{.module = std::string(32, '0')}, "other device code"},
           {{.arch = "sm_120"}, "needs sm_120"}}) {
    WriteTuned(kSum, kSum, changed);
    EXPECT_EQ(Apply("5").out, std::string(kResult) + "88\n");
    EXPECT_EQ(report_.launches.at(0).verdict, Verdict::kNotCompared);
    EXPECT_THAT(report_.launches[0].reason, HasSubstr(reason));
    std::filesystem::remove(dir_.path() / "report");
  }
  WriteTuned(kSum, "no instruction");
  EXPECT_EQ(Apply("5").out, std::string(kResult) + "88\n");
  EXPECT_THAT(report_.launches.at(0).reason, HasSubstr("cuModuleLoadData failed"));
}

TEST_F(Recorded, AFolderWithoutATunedKernelIsAnError) {
  const Outcome outcome = Apply("2");
  EXPECT_EQ(outcome.out, std::string(kResult) + "40\n");
  EXPECT_THAT(report_.errors, ElementsAre(HasSubstr("best")));
}

}  // namespace
}  // namespace atunner::recorder
