#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/capture/capture_reader.h"
#include "atunner/capture/capture_writer.h"
#include "atunner/capture/replacement.h"

namespace atunner::capture {
namespace {

using testing::HasSubstr;

class Captures : public testing::Test {
 protected:
  Path folder() const { return dir_.path() / "app.capture"; }
  static CaptureHead Head() { return {"./app", {"100"}, "A100", Evidence::kPredicted}; }

  /// A capture of one launch.
  Capture Sample(CaptureWriter& writer) {
    Capture capture{.head = Head()};
    capture.modules = {{writer.Put("// PTX").value(), "", 80}};
    capture.kernels = {{0, "_Z5scalePf", "scale(float*)"}};
    CapturedLaunch launch;
    launch.number = 7;
    launch.configuration = {{40}, {256}, {}, 1024, true, false};
    launch.parameters = {{std::string(8, '\0'), {{0, 0, 16}}},
                         {std::string("\x00\xff\x7f", 3), {}}};
    launch.buffers = {
        {64, writer.Put(std::string(64, 'x')).value(), "", {{0, 8}, {16, 64}}, {{8, 0, 4}}}};
    launch.symbols = {{"c", 4, writer.Put("abcd").value(), ""}};
    launch.seconds = 0.25;
    capture.launches = {launch};
    capture.groups = {{0, launch.configuration, 1000, 250.0}};
    capture.notes = {"a texture was not recorded"};
    capture.endings = {{3, 0}};
    return capture;
  }
  static void Write(const Capture& capture, CaptureWriter& writer) {
    ASSERT_TRUE(writer.Append(capture.modules[0]));
    ASSERT_TRUE(writer.Append(capture.kernels[0]));
    ASSERT_TRUE(writer.Append(capture.launches[0]));
    ASSERT_TRUE(writer.Append(GroupsRecord{capture.groups}));
    ASSERT_TRUE(writer.Append(CaptureNote{capture.notes[0]}));
    ASSERT_TRUE(writer.Append(capture.endings[0]));
  }

  TemporaryDirectory dir_;
};

TEST_F(Captures, ComeBackAsTheyWereWritten) {
  ASSERT_TRUE(BeginCapture(folder(), Head()));
  CaptureWriter writer(folder());
  const Capture written = Sample(writer);
  Write(written, writer);
  EXPECT_TRUE(IsCapture(folder()));
  EXPECT_EQ(ReadCapture(folder()).value(), written);
}

TEST_F(Captures, HalfALineAtTheEndIsIgnored) {
  ASSERT_TRUE(BeginCapture(folder(), Head()));
  CaptureWriter writer(folder());
  Write(Sample(writer), writer);
  const std::string text = ReadFile(RecordsOf(folder())).value();
  const size_t last = text.rfind('\n', text.size() - 2);
  const Capture read = ParseCapture(text.substr(0, last + 10), "records").value();
  EXPECT_TRUE(read.endings.empty());
  EXPECT_EQ(read.launches.size(), 1u);
}

TEST_F(Captures, WrongRecordsAreNamed) {
  const std::string head =
      R"({"record":"head","format":1,"program":"a","arguments":[],"gpu":"A100",)"
      R"("evidence":"predicted"})"
      "\n";
  const auto problem = [&](const std::string& line) {
    const auto read = ParseCapture(head + line + "\n", "r");
    return read ? "" : read.error().ToString();
  };
  EXPECT_THAT(problem(R"({"record":"kernel","module":0,"name":"k","readable":"k"})"),
              HasSubstr("r:2: there is no module 0"));
  EXPECT_THAT(problem(R"({"record":"module","ptx":"../x","cubin":"","arch":80})"),
              HasSubstr("names no blob"));
  EXPECT_THAT(problem(R"({"record":"voyage"})"), HasSubstr("unknown record 'voyage'"));
  EXPECT_THAT(problem("{"), HasSubstr("r:2"));
  EXPECT_THAT(ParseCapture("", "r").error().ToString(), HasSubstr("this is no capture"));
  EXPECT_EQ(ParseCapture(R"({"record":"head","format":9})"
                         "\n",
                         "r")
                .error()
                .code,
            ErrorCode::kUnsupported);
}

TEST_F(Captures, OnlyAnEarlierCaptureIsReplaced) {
  ASSERT_TRUE(BeginCapture(folder(), Head()));
  CaptureWriter writer(folder());
  const BlobId blob = writer.Put("old").value();
  ASSERT_TRUE(BeginCapture(folder(), Head()));
  EXPECT_FALSE(BlobStore(BlobsOf(folder())).Get(blob));
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "mine" / "notes.txt", "precious"));
  EXPECT_THAT(BeginCapture(dir_.path() / "mine", Head()).error().ToString(),
              HasSubstr("this is no capture"));
  EXPECT_EQ(ReadCapture(dir_.path() / "mine").error().code, ErrorCode::kNotFound);
}

TEST_F(Captures, BlobsAreStoredOnceAndChecked) {
  BlobStore blobs(dir_.path() / "blobs");
  std::string large(3'000'000, '\0');
  for (size_t i = 0; i < large.size(); i += 3) large[i] = static_cast<char>(i * 2654435761u >> 7);
  for (const std::string& bytes :
       {std::string(), std::string("a"), large, std::string(10'000'000, 'z')}) {
    const BlobId id = blobs.Put(bytes).value();
    EXPECT_EQ(blobs.Put(bytes).value(), id);
    EXPECT_EQ(blobs.Get(id).value(), bytes);
  }
  const BlobId id = blobs.Put("a").value();
  std::string damaged = ReadFile(blobs.FileOf(id)).value();
  damaged.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomic(blobs.FileOf(id), damaged));
  EXPECT_FALSE(blobs.Get(id));
  std::filesystem::copy_file(blobs.FileOf(blobs.Put("b").value()), blobs.FileOf(id),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(blobs.Get(id).error().ToString(), HasSubstr("do not belong to this name"));
  EXPECT_FALSE(blobs.Get("../../etc/passwd"));
  EXPECT_EQ(blobs.Get(std::string(32, '0')).error().code, ErrorCode::kNotFound);
}

TEST_F(Captures, AFolderThatCannotBeWrittenIsSaid) {
  CaptureWriter writer("/proc/nothing/app.capture");
  EXPECT_FALSE(writer.Put("x"));
  EXPECT_EQ(writer.Append(CaptureNote{"x"}).error().code, ErrorCode::kUnavailable);
}

TEST_F(Captures, ReplacementsComeBackAndNameFilesOfTheirFolder) {
  Replacement replacement;
  replacement.kernel = "_Z1kPf";
  replacement.module = "3f2a";
  replacement.image = "kernel.ptx";
  replacement.arch = "sm_90";
  replacement.entry = "k";
  replacement.launches = {{{{40}, {256}}, {{20}, {512}, {}, 64}}};
  ASSERT_TRUE(WriteReplacement(dir_.path(), replacement));
  EXPECT_EQ(ReadReplacement(dir_.path()).value(), replacement);
  EXPECT_EQ(replacement.tolerance, 1e-5);
  Replacement hostile = replacement;
  hostile.image = "../kernel.ptx";
  ASSERT_TRUE(WriteReplacement(dir_.path(), hostile));
  EXPECT_THAT(ReadReplacement(dir_.path()).error().ToString(), HasSubstr("no file of this folder"));
  EXPECT_EQ(ReadReplacement(dir_.path() / "none").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / kReplacementFile, "{\"format\": 1}"));
  EXPECT_THAT(ReadReplacement(dir_.path()).error().ToString(), HasSubstr("kernel"));
}

TEST(Capture, TheLongestGroupComesFirst) {
  Capture capture;
  capture.modules.resize(1);
  capture.kernels.resize(1);
  CapturedLaunch small, large, broken;
  small.configuration.grid.x = 1;
  large.configuration.grid.x = 2;
  broken.left_out = "too large";
  capture.launches = {small, large, broken};
  capture.groups = {{0, small.configuration, 10, 1.0}, {0, large.configuration, 2, 3.0}};
  const auto found = capture.RepeatableLaunches(0);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]->configuration.grid.x, 2u);
}

}  // namespace
}  // namespace atunner::capture
