// Operators of the graph library and graphs in files, end to end on the virtual GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;

class Graphs : public testing::Test {
 protected:
  void SetUp() override {
    if (RunShell(home(), "$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") ==
        std::string::npos)
      GTEST_SKIP() << "NVRTC is not installed";
  }
  std::string home() const { return dir_.path().string(); }

  /// A kernel was found, and the artifact is judged right again, with other inputs.
  void ExpectTuned(const std::string& what) {
    SCOPED_TRACE(what);
    const Outcome tuned = RunShell(
        home(),
        "$A optimize " + what + " --target-gpu A100 --virtual --budget 4 --json --out best");
    ASSERT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
    EXPECT_EQ(ParseJson(tuned.out).value()["trials"], 4);
    const Outcome verified = RunShell(home(), "$A verify best --virtual --json");
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
    const std::string manifest = ReadFile(home() + "/best/manifest.json").value();
    EXPECT_THAT(manifest, HasSubstr("\\noutput "));
    std::filesystem::remove_all(home() + "/best");
  }

  TemporaryDirectory dir_;
};

TEST_F(Graphs, OperatorsOfTheLibraryAreTunedByName) {
  ExpectTuned("--operator gelu --input-shape 64,512 --dtype bfloat16");
  ExpectTuned("--operator rms_norm --input-shape 33,512 --dtype float16");
  ExpectTuned("--operator sum --input-shape 65,100 --attr axis=1");
  ExpectTuned("--operator gelu-backward --input-shape 17,64");
}

TEST_F(Graphs, TheAccuracyPolicyIsInTheTaskTheManifestAndTheReport) {
  const std::string command =
      "$A optimize --operator rms_norm --input-shape 33,512 --target-gpu A100 --virtual --budget "
      "2 ";
  const Outcome tuned = RunShell(home(), command + "--accuracy fast --out best");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
  EXPECT_THAT(ReadFile(home() + "/best/manifest.json").value(), HasSubstr("\"accuracy\""));
  EXPECT_THAT(ReadFile(home() + "/best/report.html").value(),
              HasSubstr("Accuracy policy fast: the largest relative error of"));
  EXPECT_THAT(RunShell(home(), "$A show best").out, HasSubstr("accuracy       fast"));
  EXPECT_EQ(RunShell(home(), "$A verify best --virtual --accuracy default").exit_code, 0);
  const Outcome wrong = RunShell(home(), command + "--accuracy high");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("use strict, default or fast"));
}

TEST_F(Graphs, EveryOperatorIsVerifiedAndCounted) {
  const Outcome some = RunShell(home(),
                                "$A test --operators --virtual --only hypot,fp8_linear --json");
  ASSERT_EQ(some.exit_code, 0) << some.out << some.err;
  const Json json = ParseJson(some.out).value();
  EXPECT_EQ(json["operators"], 3) << "hypot, its gradient and fp8_linear";
  EXPECT_GE(json["cases"].get<int>(), 3 * (2 * 4 + 4)) << "three shapes in every float type";
  EXPECT_EQ(json["failed"], 0);
  const Outcome none = RunShell(home(), "$A test --operators --virtual --only hypott");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no operator is called like that"));
}

TEST_F(Graphs, AGraphInAFileIsTuned) {
  ASSERT_TRUE(WriteFileAtomic(
      home() + "/swish.atg",
      "graph swish\ndim B = 1..1000\ninput x: bfloat16[B, 96]\ninput b: bfloat16[96]\n"
      "t = cast(x, float32) + cast(b, float32)\ny = cast(t * sigmoid(t), bfloat16)\noutput y\n"));
  ExpectTuned("--graph swish.atg --dim B=40");
}

TEST_F(Graphs, AGraphIsTunedAtSeveralSizes) {
  ASSERT_TRUE(
      WriteFileAtomic(home() + "/sum.atg",
                      "graph sum\ndim N = 1..1000\ndim M = 1..1000\ninput x: float32[M, N, 8]\n"
                      "y = reduce_sum(x, axes=[-1])\noutput y\n"));
  const std::string command = "$A optimize --graph sum.atg --target-gpu A100 --virtual --budget 1 ";
  const Outcome tuned = RunShell(home(), command + "--dim N=3,200 M=5 --json --out best");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.out << tuned.err;
  const Json json = ParseJson(tuned.out).value();
  ASSERT_EQ(json["sizes"].size(), 2);
  EXPECT_EQ(json["artifacts"], "best");
  for (const char* size : {"M=5,N=3", "M=5,N=200"}) {
    const Outcome verified = RunShell(home(), "$A verify best/" + std::string(size) + " --virtual");
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  }
  EXPECT_EQ(json["sizes"][1]["artifact"], "best/M=5,N=200");

  const auto problem = [&](const std::string& rest) {
    return RunShell(home(), command + rest).err;
  };
  EXPECT_THAT(problem("--dim N=3,200"), HasSubstr("give --out FOLDER"));
  EXPECT_THAT(problem("--dim N=3,200 --out best/M=5,N=3"), HasSubstr("is an artifact itself"));
  EXPECT_THAT(problem("--dim N=3,x"), HasSubstr("'x' is no dimension"));
  EXPECT_THAT(problem("--dim N"), HasSubstr("write n=512, or n=1,512,4096"));
  EXPECT_THAT(RunShell(home(), "$A predict --graph sum.atg --dim N=3,4 --target-gpu A100").err,
              HasSubstr("several sizes, where one is meant"));
}

TEST_F(Graphs, MistakesAreSaidWithTheirPlace) {
  ASSERT_TRUE(WriteFileAtomic(home() + "/bad.atg",
                              "graph bad\ninput x: float32[4]\ny = exq(x)\noutput y\n"));
  const Outcome bad = RunShell(home(), "$A optimize --graph bad.atg");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.atg:3:5: unknown function 'exq'"));
  ASSERT_TRUE(WriteFileAtomic(home() + "/sorted.atg",
                              "graph s\ninput x: int64[9, 9000]\ny = sort(x, axis=1)\noutput y\n"));
  // What no family computes runs on plain kernels, and is said to.
  const Outcome unserved = RunShell(home(), "$A graph sorted.atg --target-gpu A100");
  EXPECT_EQ(unserved.exit_code, 0) << unserved.err;
  EXPECT_THAT(unserved.out, HasSubstr("group 1: plain kernels, 1 node"));
  EXPECT_THAT(RunShell(home(), "$A optimize").err, HasSubstr("--graph"));
  EXPECT_THAT(RunShell(home(), "$A operators").out, HasSubstr("rms_norm(x[…, C], weight[C]) → y"));
  const std::string some = RunShell(home(), "$A operators rms_norm topk").out;
  EXPECT_THAT(some,
              testing::AllOf(HasSubstr("add_rms_norm("), HasSubstr("topk("),
                             HasSubstr("tuned by: topk"), testing::Not(HasSubstr("softmax("))));
}

}  // namespace
}  // namespace atunner
