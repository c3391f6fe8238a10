#include "atunner/model/candidate/candidate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"
#include "atunner/model/trial/trial.h"

namespace atunner {
namespace {

ParameterSpace Space() {
  ParameterSpace space;
  space.parameters = {{"threads", {int64_t{64}, int64_t{128}}, ""},
                      {"unroll", {int64_t{1}, int64_t{2}}, ""}};
  return space;
}

RenderedKernel Kernel(const std::string& text) {
  RenderedKernel kernel;
  kernel.source.text = text;
  LaunchStep step;
  step.entry = "k";
  step.grid[0] = Expr::MustParse("rows");
  kernel.plan.steps = {step};
  return kernel;
}

TEST(Candidate, TheIdIsOfNamesAndValues) {
  ParameterSpace reordered = Space();
  std::swap(reordered.parameters[0], reordered.parameters[1]);
  const Candidate one = MakeCandidate(Space(), {{int64_t{128}, int64_t{2}}}, {"default", ""});
  EXPECT_EQ(one.id, MakeCandidate(reordered, {{int64_t{2}, int64_t{128}}}, {"user", "why"}).id);
  EXPECT_NE(one.id, MakeCandidate(Space(), {{int64_t{64}, int64_t{2}}}, {"default", ""}).id);
  EXPECT_EQ(one.Describe(Space()), "threads=128, unroll=2");
}

TEST(Candidate, TheIdOfAKernelIsOfItsTextAndLaunch) {
  const Candidate source = MakeSourceCandidate(Kernel("a"), {"user", ""});
  RenderedKernel wider = Kernel("a");
  wider.plan.steps[0].block[0] = 256;
  EXPECT_EQ(source.id, MakeSourceCandidate(Kernel("a"), {"llm:some", "shorter"}).id);
  EXPECT_NE(source.id, MakeSourceCandidate(Kernel("b"), {"user", ""}).id);
  EXPECT_NE(source.id, MakeSourceCandidate(wider, {"user", ""}).id);
  EXPECT_NE(source.id, MakePtxCandidate(Kernel("a"), {"user", ""}).id);
  EXPECT_EQ(source.configuration(), nullptr);
  EXPECT_EQ(source.Describe(Space()), "CUDA source " + source.id.ToHex().substr(0, 8));
}

TEST(Candidate, JsonKeepsEveryKind) {
  const Candidate configuration = MakeCandidate(Space(), {{int64_t{128}, int64_t{2}}},
                                                {"search:bayes", "expected"});
  for (const Candidate& candidate :
       {configuration, MakeSourceCandidate(Kernel("a"), {"user", "", configuration.id}),
        MakePtxCandidate(Kernel(".version 8.0"), {"rewrite:unroll", "fewer branches"})}) {
    const auto back = FromJson<Candidate>(ToJson(candidate));
    ASSERT_TRUE(back) << back.error().ToString();
    EXPECT_EQ(back->id, candidate.id);
    EXPECT_EQ(back->kind(), candidate.kind());
    EXPECT_EQ(back->provenance, candidate.provenance);
    EXPECT_EQ(ToJson(*back).dump(), ToJson(candidate).dump());
  }
  EXPECT_FALSE(FromJson<Candidate>(Json{{"kind", "poem"}}));
}

TEST(Candidate, TrialsOfSchema1AreRead) {
  const Json stored{{"number", 3}, {"configuration", {128, 2}}, {"proposer", "bayes"}};
  const auto trial = FromJson<Trial>(stored);
  ASSERT_TRUE(trial) << trial.error().ToString();
  EXPECT_EQ(trial->configuration(), (Configuration{{int64_t{128}, int64_t{2}}}));
  EXPECT_EQ(trial->proposer(), "search:bayes");
  EXPECT_EQ(trial->candidate.id, Digest{});
}

}  // namespace
}  // namespace atunner
