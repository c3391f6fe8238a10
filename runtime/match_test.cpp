#include "runtime/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/test_artifacts.h"

namespace atunner::loader {
namespace {

using testing::HasSubstr;

const DeviceFacts kA100 = {"NVIDIA A100-SXM4-80GB", 8, 0, 166912};
const DeviceFacts kA30 = {"NVIDIA A30", 8, 0, 166912};
const DeviceFacts kA10 = {"NVIDIA A10", 8, 6, 101376};
const DeviceFacts kH200 = {"NVIDIA H200", 9, 0, 232448};
const DeviceFacts kB200 = {"NVIDIA B200", 10, 0, 232448};
const DeviceFacts kT4 = {"Tesla T4", 7, 5, 65536};

Artifact WithImages(Artifact artifact, bool cubin = true, bool ptx = true) {
  if (cubin) artifact.digests["kernel.cubin"] = DigestOf("cubin");
  if (ptx) artifact.digests["kernel.ptx"] = DigestOf("ptx");
  return artifact;
}

Artifact Compiled(const std::string& arch, bool cubin = true, bool ptx = true) {
  Artifact artifact = WithImages(ScaleArtifact(), cubin, ptx);
  artifact.arch = arch;
  return artifact;
}

TEST(RunnableImage, FollowsCudasCompatibilityRules) {
  EXPECT_EQ(RunnableImage(Compiled("sm_80"), kA100), Image::kCubin);
  EXPECT_EQ(RunnableImage(Compiled("sm_80"), kA10), Image::kCubin)
      << "binaries run on later minor versions";
  EXPECT_EQ(RunnableImage(Compiled("sm_86"), kA100), Image::kNone) << "and not on earlier ones";
  EXPECT_EQ(RunnableImage(Compiled("sm_80"), kH200), Image::kPtx)
      << "PTX runs on every later version";
  EXPECT_EQ(RunnableImage(Compiled("sm_80", true, false), kH200), Image::kNone);
  EXPECT_EQ(RunnableImage(Compiled("sm_80", false, true), kA100), Image::kPtx);
  EXPECT_EQ(RunnableImage(Compiled("sm_80"), kT4), Image::kNone);
  EXPECT_EQ(RunnableImage(Compiled("sm_90a"), kH200), Image::kCubin);
  EXPECT_EQ(RunnableImage(Compiled("sm_90a"), kB200), Image::kNone)
      << "architecture-specific code is not portable";
  EXPECT_EQ(RunnableImage(Compiled("sm_100f"), {"B300", 10, 3, 232448}), Image::kCubin);
  EXPECT_EQ(RunnableImage(Compiled("sm_100f"), {"next", 11, 0, 232448}), Image::kNone);
  EXPECT_EQ(RunnableImage(Compiled("compute_75", false, true), kT4), Image::kPtx);
  EXPECT_EQ(RunnableImage(Compiled("sm_120"), kB200), Image::kNone);
  Artifact empty = Compiled("sm_80", false, true);
  empty.digests["kernel.cubin"] = DigestOf("");
  EXPECT_EQ(RunnableImage(empty, kA100), Image::kPtx) << "an empty cubin is none";
}

TEST(Examine, StatesTheQuality) {
  const Artifact artifact = WithImages(ScaleArtifact());
  const Problem same = {"scale", DType::kFloat32, {{"n", 1000}}, {}};
  const Problem other = {"scale", {}, {{"n", 4000}}, {}};
  EXPECT_EQ(Examine(artifact, kA100, same).quality, MatchQuality::kExact);
  EXPECT_EQ(Examine(artifact, kA100, other).quality, MatchQuality::kDevice);
  EXPECT_DOUBLE_EQ(Examine(artifact, kA100, other).distance, 2);
  EXPECT_EQ(Examine(artifact, kA30, same).quality, MatchQuality::kArchitecture);
  EXPECT_EQ(Examine(artifact, kA10, same).quality, MatchQuality::kCompatible);
  EXPECT_EQ(Examine(artifact, kH200, same).quality, MatchQuality::kCompatible);
  EXPECT_EQ(Examine(artifact, kT4, same).quality, MatchQuality::kNone);
  EXPECT_EQ(Examine(artifact, kA100, other).text,
            "tuned for NVIDIA A100-SXM4-80GB at another size (n=1000), predicted");
  EXPECT_THAT(Examine(artifact, kA10, same).text, HasSubstr("8.0; this NVIDIA A10 has 8.6"));
}

TEST(Examine, SaysWhyAnArtifactDoesNotServe) {
  Artifact artifact = WithImages(ScaleArtifact());
  const auto why = [&](const Problem& problem, const DeviceFacts& facts = kA100) {
    const Match match = Examine(artifact, facts, problem);
    EXPECT_EQ(match.quality, MatchQuality::kNone);
    return match.text;
  };
  EXPECT_THAT(why({"softmax", {}, {{"n", 1000}}, {}}), HasSubstr("computes scale"));
  EXPECT_THAT(why({"", DType::kFloat16, {{"n", 1000}}, {}}), HasSubstr("computes in float32"));
  EXPECT_THAT(why({"", {}, {{"n", 1000}}, {{"factor", 3.0}}}), HasSubstr("factor=2.5"));
  EXPECT_THAT(why({"", {}, {{"n", 1000}}, {{"shift", 3.0}}}), HasSubstr("no attribute 'shift'"));
  EXPECT_THAT(why({"", {}, {{"m", 1000}}, {}}), HasSubstr("no dim 'm'"));
  EXPECT_THAT(why({"", {}, {{"n", 1000}}, {}}, kT4), HasSubstr("compiled for sm_80"));
  artifact.plan.steps[0].shared_bytes = Expr(120000);
  EXPECT_EQ(Examine(artifact, kA100, {"", {}, {{"n", 1000}}, {}}).quality, MatchQuality::kExact);
  EXPECT_THAT(why({"", {}, {{"n", 1000}}, {}}, kA10), HasSubstr("120000 bytes of shared memory"));
  artifact.plan.steps[0].shared_bytes = Expr(0);
  artifact.plan.steps[0].cluster[0] = Expr(2);
  EXPECT_THAT(why({"", {}, {{"n", 1000}}, {}}), HasSubstr("clusters"));
  artifact.plan.steps[0].cluster[0] = Expr(1);
  artifact.valid_sizes.dims.clear();
  EXPECT_THAT(why({"", {}, {{"n", 999}}, {}}), HasSubstr("n = 1000, not 999"));
}

class Choosing : public testing::Test {
 protected:
  Artifact& Add(const std::string& device, int cc, int64_t n, double ns) {
    Artifact& artifact = *artifacts_.emplace_back(
        std::make_unique<Artifact>(WithImages(ScaleArtifact())));
    artifact.device = device;
    artifact.cc_major = cc / 10;
    artifact.cc_minor = cc % 10;
    artifact.arch = "sm_" + std::to_string(cc);
    artifact.spec.dims["n"] = n;
    artifact.trial.estimate->time_ns = ns;
    return artifact;
  }
  Result<Choice> Choose(const DeviceFacts& facts, const Problem& problem,
                        MatchQuality least = MatchQuality::kNone) {
    std::vector<const Artifact*> all;
    for (const auto& artifact : artifacts_) all.push_back(artifact.get());
    return ChooseArtifact(all, facts, problem, least);
  }
  std::vector<std::unique_ptr<Artifact>> artifacts_;
};

TEST_F(Choosing, TakesTheBestQualityThenTheNearestSizeThenTheFastest) {
  Add("NVIDIA A30", 80, 1000, 100);             // 0
  Add(kA100.name, 80, 4000, 100);               // 1
  Add(kA100.name, 80, 64000, 100);              // 2
  Add(kA100.name, 80, 1000, 300);               // 3
  Add(kA100.name, 80, 1000, 200);               // 4
  Add("NVIDIA GeForce RTX 3090", 86, 1000, 1);  // 5
  EXPECT_EQ(Choose(kA100, {"", {}, {{"n", 1000}}, {}})->index, 4u);
  EXPECT_EQ(Choose(kA100, {"", {}, {{"n", 5000}}, {}})->index, 1u);
  EXPECT_EQ(Choose(kA100, {"", {}, {{"n", 50000}}, {}})->index, 2u);
  EXPECT_EQ(Choose(kA30, {"", {}, {{"n", 1000}}, {}})->index, 0u);
  EXPECT_EQ(Choose(kA10, {"", {}, {{"n", 1000}}, {}})->index, 5u) << "same compute capability";
  EXPECT_EQ(Choose(kA10, {"", {}, {{"n", 1000}}, {}})->match.quality, MatchQuality::kArchitecture);
  artifacts_[3]->evidence = Evidence::kMeasured;
  artifacts_[3]->trial.measurement = Measurement{.median_ns = 400};
  EXPECT_EQ(Choose(kA100, {"", {}, {{"n", 1000}}, {}})->index, 3u) << "measured before predicted";
}

TEST_F(Choosing, RefusesWhatIsWorseThanAskedFor) {
  Add("NVIDIA A30", 80, 1000, 100);
  const auto refused = Choose(kA100, {"scale", {}, {{"n", 1000}}, {}}, MatchQuality::kDevice);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(refused.error().ToString(),
              testing::AllOf(HasSubstr("NVIDIA A30"), HasSubstr("n=1000"), HasSubstr("optimize")));
  EXPECT_TRUE(
      Choose(kA100, {"scale", {}, {{"n", 1000}}, {}}, MatchQuality::kArchitecture).has_value());
  EXPECT_THAT(ChooseArtifact({}, kA100, {}, MatchQuality::kNone).error().what,
              HasSubstr("no artifact"));
}

TEST_F(Choosing, AsksWhenTheProblemIsAmbiguous) {
  Add(kA100.name, 80, 1000, 100);
  Artifact& second = Add(kA100.name, 80, 1000, 100);
  const Problem open = {"", {}, {{"n", 1000}}, {}};
  second.spec.attributes["factor"] = 3.0;
  EXPECT_THAT(Choose(kA100, open).error().what, HasSubstr("attribute 'factor': 2.5, 3"));
  EXPECT_EQ(Choose(kA100, {"", {}, {{"n", 1000}}, {{"factor", int64_t{3}}}})->index, 1u);
  second.spec.attributes["factor"] = 2.5;
  second.spec.compute_dtype = DType::kFloat16;
  EXPECT_THAT(Choose(kA100, open).error().what, HasSubstr("float16, float32"));
  EXPECT_EQ(Choose(kA100, {"", DType::kFloat16, {{"n", 1000}}, {}})->index, 1u);
  second.name = "softmax";
  EXPECT_THAT(Choose(kA100, open).error().what, HasSubstr("scale, softmax"));
  EXPECT_EQ(Choose(kA100, {"scale", {}, {{"n", 1000}}, {}})->index, 0u);
}

}  // namespace
}  // namespace atunner::loader
