#include "atunner/capture/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/capture/capture_reader.h"
#include "atunner/capture/map_memory_test.h"

namespace atunner::capture {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

template <class T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

class Recordings : public testing::Test {
 protected:
  Recordings() {
    EXPECT_TRUE(BeginCapture(folder(), {"./app", {}, "A100", Evidence::kPredicted}));
    memory_.buffers = {{0x1000, std::string(64, 'a')},
                       {0x2000, std::string(32, 'b')},
                       {0x3000, std::string(16, 'c')}};
  }
  Path folder() const { return dir_.path() / "app.capture"; }
  Recording Start(RecordingLimits limits = {}) {
    Recording recording(folder(), limits);
    recording.AddKernel({recording.AddModule("// ptx", "", 80), "_Z1kPf", "k(float*)"});
    return recording;
  }
  LaunchFacts Launch(uint32_t grid) const {
    return {0, {{grid}, {32}}, {BytesOf(uint64_t{0x1010}), BytesOf(3.5f)}, {}, {}, ""};
  }

  TemporaryDirectory dir_;
  MapMemory memory_;
};

TEST_F(Recordings, TheFirstLaunchOfEachConfigurationIsRecorded) {
  Recording recording = Start();
  for (const uint32_t grid : {1u, 1u, 2u, 1u}) {
    const bool wanted = recording.Wants(Launch(grid));
    if (wanted)
      ASSERT_TRUE(recording.Begin(Launch(grid), memory_));
    else
      recording.Count(Launch(grid));
    recording.AddSeconds(Launch(grid), 0.5);
    if (!wanted) continue;
    memory_.buffers[0x1000][4] = static_cast<char>('0' + grid);
    recording.End(memory_, {{{0x1004, 0x1005}}}, 0.5, Evidence::kPredicted);
  }
  recording.Finish();
  const Capture capture = ReadCapture(folder()).value();
  ASSERT_EQ(capture.launches.size(), 2u);
  const CapturedLaunch& first = capture.launches[0];
  ASSERT_EQ(first.buffers.size(), 1u);
  EXPECT_EQ(first.parameters[0].pointers, (std::vector<CapturedPointer>{{0, 0, 16}}));
  EXPECT_EQ(first.parameters[0].bytes, std::string(8, '\0'));
  EXPECT_EQ(first.parameters[1].bytes, BytesOf(3.5f));
  EXPECT_EQ(first.buffers[0].written, (std::vector<ByteRange>{{4, 5}}));
  const BlobStore blobs(BlobsOf(folder()));
  EXPECT_EQ(blobs.Get(first.buffers[0].before).value(), std::string(64, 'a'));
  EXPECT_EQ(blobs.Get(first.buffers[0].after).value()[4], '1');
  EXPECT_EQ(capture.launches[1].number, 2u);
  ASSERT_EQ(capture.groups.size(), 2u);
  EXPECT_EQ(capture.groups[0].launches, 3u);
  EXPECT_EQ(capture.groups[0].seconds, 1.5);
}

TEST_F(Recordings, LaunchesThatWereNotTimedTakeTheMeanTime) {
  Recording recording = Start();
  for (int i = 0; i < 10; ++i) recording.Count(Launch(1));
  recording.AddSeconds(Launch(1), 1);
  recording.AddSeconds(Launch(1), 3);
  recording.Finish();
  EXPECT_EQ(ReadCapture(folder()).value().groups.at(0).seconds, 20);
}

TEST_F(Recordings, AFirstLaunchThatAlsoLoadsCodeDoesNotCount) {
  Recording recording = Start();
  for (int i = 0; i < 10; ++i) recording.Count(Launch(1));
  for (const double seconds : {100.0, 1.0, 3.0}) recording.AddSeconds(Launch(1), seconds);
  recording.Count(Launch(2));
  recording.AddSeconds(Launch(2), 7);
  recording.Finish();
  const Capture capture = ReadCapture(folder()).value();
  EXPECT_EQ(capture.groups.at(0).seconds, 20);
  EXPECT_EQ(capture.groups.at(1).seconds, 7) << "it is the only one";
}

TEST_F(Recordings, CountingDoesNotTakeTheChanceToRecord) {
  Recording recording = Start();
  recording.Count(Launch(1));
  EXPECT_TRUE(recording.Begin(Launch(1), memory_));
  recording.Cancel();
  recording.End(memory_, std::nullopt, 0, Evidence::kMeasured);
  recording.Finish();
  const Capture capture = ReadCapture(folder()).value();
  EXPECT_THAT(capture.launches, IsEmpty());
  EXPECT_EQ(capture.groups.at(0).launches, 2u);
}

TEST_F(Recordings, MemoryThatHoldsPointersBringsWhatTheyLeadTo) {
  memory_.buffers[0x1000].replace(8, 8, BytesOf(uint64_t{0x2004}));
  memory_.buffers[0x2000].replace(0, 8, BytesOf(uint64_t{0x3000}));
  memory_.undefined = 0x3000;
  Recording recording = Start();
  ASSERT_TRUE(recording.Begin(Launch(1), memory_));
  recording.End(memory_, std::nullopt, 0, Evidence::kMeasured);
  const CapturedLaunch launch = ReadCapture(folder()).value().launches.at(0);
  ASSERT_EQ(launch.buffers.size(), 3u);
  EXPECT_EQ(launch.buffers[0].pointers, (std::vector<CapturedPointer>{{8, 1, 4}}));
  EXPECT_EQ(launch.buffers[1].pointers, (std::vector<CapturedPointer>{{0, 2, 0}}));
  EXPECT_EQ(launch.buffers[2].before, "");
  EXPECT_THAT(launch.buffers[0].written, IsEmpty());
}

TEST_F(Recordings, ALaunchThatWroteNothingDoesNotStandForTheOthers) {
  Recording recording = Start();
  for (int i = 0; i < 3; ++i) {
    if (!recording.Wants(Launch(1))) continue;
    ASSERT_TRUE(recording.Begin(Launch(1), memory_));
    if (i == 1) memory_.buffers[0x1000][4] = 'x';
    recording.End(memory_, std::nullopt, 0, Evidence::kMeasured);
  }
  const Capture capture = ReadCapture(folder()).value();
  ASSERT_EQ(capture.launches.size(), 2u);
  EXPECT_THAT(capture.launches[0].buffers.at(0).written, IsEmpty());
  EXPECT_THAT(capture.launches[1].buffers.at(0).written, testing::Not(IsEmpty()));
}

TEST_F(Recordings, VariablesThatHoldAddressesBringWhatTheyLeadTo) {
  memory_.buffers[0x2000].replace(8, 8, BytesOf(uint64_t{0x3004}));
  Recording recording = Start();
  LaunchFacts facts = Launch(1);
  facts.symbols = {{"table", 0x2000, 32}};
  ASSERT_TRUE(recording.Begin(facts, memory_));
  recording.End(memory_, std::nullopt, 0, Evidence::kMeasured);
  const CapturedLaunch launch = ReadCapture(folder()).value().launches.at(0);
  ASSERT_EQ(launch.buffers.size(), 2u);
  EXPECT_EQ(launch.symbols.at(0).pointers, (std::vector<CapturedPointer>{{8, 1, 4}}));
  EXPECT_EQ(launch.symbols[0].after, "");
}

TEST_F(Recordings, LaunchesThatCannotBeComparedAreLeftOutWithTheReason) {
  Recording recording = Start();
  ASSERT_TRUE(recording.Begin(Launch(1), memory_));
  memory_.buffers[0x1000].replace(16, 8, BytesOf(uint64_t{0x2008}));
  recording.End(memory_, {{{0x1010, 0x1018}}}, 0, Evidence::kPredicted);
  ASSERT_TRUE(recording.Begin(Launch(2), memory_));
  recording.LeaveOut("it takes too long");
  recording.End(memory_, {{{0x1000, 0x1004}}}, 0, Evidence::kPredicted);
  const Capture capture = ReadCapture(folder()).value();
  EXPECT_THAT(capture.launches.at(0).left_out, HasSubstr("it writes addresses into memory"));
  EXPECT_EQ(capture.launches.at(1).left_out, "it takes too long");
}

TEST_F(Recordings, ChangesAreFoundWhereWritesAreNotKnown) {
  Recording recording = Start();
  LaunchFacts facts = Launch(1);
  facts.symbols = {{"table", 0x2000, 8}};
  ASSERT_TRUE(recording.Begin(facts, memory_));
  memory_.buffers[0x1000][7] = memory_.buffers[0x1000][9] = 'x';
  memory_.buffers[0x2000][0] = 'y';
  recording.End(memory_, std::nullopt, 0.1, Evidence::kMeasured);
  const CapturedLaunch launch = ReadCapture(folder()).value().launches.at(0);
  EXPECT_EQ(launch.buffers[0].written, (std::vector<ByteRange>{{7, 10}}));
  EXPECT_EQ(launch.symbols.at(0).name, "table");
  EXPECT_NE(launch.symbols[0].after, "");
  EXPECT_EQ(launch.evidence, Evidence::kMeasured);
}

TEST_F(Recordings, TooMuchMemoryIsLeftOutWithTheReason) {
  Recording recording = Start({.launches_of_kernel = 4, .snapshot_bytes = 63});
  ASSERT_TRUE(recording.Begin(Launch(1), memory_));
  recording.End(memory_, std::nullopt, 0, Evidence::kPredicted);
  const Capture capture = ReadCapture(folder()).value();
  EXPECT_THAT(capture.launches.at(0).left_out, HasSubstr("larger than the limit"));
  EXPECT_THAT(capture.RepeatableLaunches(0), IsEmpty());
}

TEST_F(Recordings, AChildOfTheProgramWritesNothing) {
  Recording recording = Start();
  const std::string before = ReadFile(RecordsOf(folder())).value();
  const pid_t child = fork();
  if (child == 0) {
    const bool wanted = recording.Begin(Launch(1), memory_);
    recording.Finish();
    _exit(wanted ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadFile(RecordsOf(folder())).value(), before);
}

TEST_F(Recordings, AFailedWriteStopsTheRecordingAndIsSaid) {
  Recording recording("/proc/nothing/app.capture", {});
  recording.AddKernel({recording.AddModule("// ptx", "", 80), "k", "k"});
  EXPECT_THAT(recording.problem(), HasSubstr("the capture was cut short"));
  EXPECT_FALSE(recording.Begin(Launch(1), memory_));
}

}  // namespace
}  // namespace atunner::capture
