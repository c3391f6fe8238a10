// What the fuzzer does with model JSON (json_fuzz.cpp), for a few thousand damaged texts on every
// run.
#include "atunner/base/mutation_test.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "atunner/model/artifact/artifact.h"
#include "atunner/model/json/json.h"

namespace atunner {

void FuzzModel(std::string_view text);     // json_fuzz.cpp
void FuzzManifest(std::string_view text);  // artifact_fuzz.cpp

namespace {

KernelSpec FullSpec() {
  KernelSpec spec;
  spec.name = "scale";
  spec.dims = {{"cols", 64}, {"rows", 8}};
  spec.attributes = {{"factor", 2.5}, {"causal", true}, {"mode", std::string("fast")}};
  spec.args = {
      {"x",
       Role::kInput,
       DType::kFloat32,
       {Expr::MustParse("rows"), Expr::MustParse("cols * 2 // 2")},
       {},
       {}},
      {"y",
       Role::kOutput,
       DType::kBFloat16,
       {Expr::MustParse("rows"), Expr::MustParse("cols")},
       {},
       {}},
      {"n", Role::kScalar, DType::kInt32, {}, Expr::MustParse("rows * cols if causal else 1"), {}}};
  LaunchStep step;
  step.entry = "scale";
  step.grid[0] = Expr::MustParse("ceil_div(rows * cols, threads)");
  step.block[0] = Expr::MustParse("threads");
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"), ArgBinding::Workspace("w"),
               ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("factor ** 2 - 1"))};
  LaunchPlan plan;
  plan.steps = {step};
  plan.workspaces = {{"w", Expr::MustParse("rows << 4")}};
  plan.parameter_names = {"threads"};
  plan.parameter_values = {int64_t{128}};
  spec.oracle.kind = Oracle::Kind::kKernel;
  spec.oracle.kernel = RenderedKernel{.source = {.text = "__global__ void scale() {}"},
                                      .plan = plan};
  spec.tolerance.relative = 1e-5;
  spec.flops = Expr::MustParse("2 * rows * cols");
  return spec;
}

Trial FullTrial() {
  Trial trial;
  trial.number = 3;
  trial.candidate.what = Configuration{{int64_t{128}, 0.5, true, std::string("shared")}};
  trial.candidate.provenance.proposer = "search:bayes";
  trial.verdict.checks = {{.check = "oracle",
                           .family = "normal",
                           .dims = {{"rows", 8}},
                           .passed = true,
                           .error = 1e-9}};
  trial.measurement = Measurement{
      .median_ns = 1234.5, .samples_ns = {1, 2, 3}, .seed = ~uint64_t{0}};
  trial.estimate = Estimate{.time_ns = 5, .parts = {{"dram", 3, true}}};
  trial.resources = {{.entry = "k", .mangled = "_Z1k", .registers = 40}};
  trial.binary = DigestOf("x");
  return trial;
}

ParameterSpace FullSpace() {
  ParameterSpace space;
  space.parameters = {{"threads", {int64_t{32}, int64_t{64}}, "threads"},
                      {"storage", {std::string("shared"), std::string("registers")}, ""},
                      {"share", {0.5, 1.0, true}, ""}};
  space.constraints = {
      {Expr::MustParse("threads * 2 <= n or storage == 'shared'"), "too many"},
      {Expr::MustParse("storage in ('shared', 'registers') and not share > 2 ** 3 % 5"), ""}};
  return space;
}

Artifact FullArtifact() {
  Artifact artifact;
  artifact.name = "scale";
  artifact.spec = FullSpec();
  artifact.plan = artifact.spec.oracle.kernel->plan;
  artifact.configuration = {{"threads", int64_t{128}}};
  artifact.valid_sizes = {{"rows"}, {{Expr::MustParse("rows % 2 == 0"), "pairs of rows"}}};
  artifact.arch = "sm_90a";
  artifact.resources = {{.entry = "scale", .mangled = "scale", .registers = 12}};
  artifact.trial = FullTrial();
  artifact.baselines = {{.name = "naive", .comparison = Comparison{2, 1, 3, 4}}};
  artifact.digests["kernel.ptx"] = DigestOf("ptx");
  return artifact;
}

void Damage(const std::string& good, uint64_t seed, void (*read)(std::string_view)) {
  read(good);
  Random random(seed);
  for (int i = 0; i < 3000; ++i) read(Mutated(good, random));
}

TEST(Mutation, TrialsSpecsSpacesAndPlans) {
  Damage(DumpJson(ToJson(FullSpec())), 1, FuzzModel);
  Damage(DumpJson(ToJson(FullTrial())), 2, FuzzModel);
  Damage(DumpJson(ToJson(FullSpace())), 3, FuzzModel);
  Damage(DumpJson(ToJson(FullSpec().oracle.kernel->plan)), 4, FuzzModel);
}

TEST(Mutation, NumbersBeyondAnIntegerAreRefused) {
  for (const double number : {1e300, 0x1p64, -1.0}) {
    Json json = ToJson(FullTrial());
    json["measurement"]["seed"] = number;
    EXPECT_FALSE(FromJson<Trial>(json).has_value()) << number;
  }
}

TEST(Mutation, Manifests) {
  const std::string good = ArtifactManifest(FullArtifact());
  const auto accepted = ParseArtifactManifest(good, "manifest.json");
  ASSERT_TRUE(accepted.has_value()) << accepted.error().ToString();
  Damage(good, 5, FuzzManifest);
}

// Deeper than any stack: parsers and destructors must not recurse that far.
TEST(Mutation, LongAndDeepTextsAreRefusedOrRead) {
  constexpr size_t kMany = 200000;
  const auto repeated = [](std::string_view piece) {
    std::string text;
    for (size_t i = 0; i < kMany; ++i) text += piece;
    return text;
  };
  for (const std::string& text : {repeated("["), repeated("{\"a\":"), repeated("[") + repeated("]"),
                                  "{\"args\":" + repeated("[") + "}"}) {
    FuzzModel(text);
    EXPECT_FALSE(ParseJson(text).has_value());
  }
  for (const std::string& text :
       {repeated("("), repeated("-") + "1", repeated("not ") + "1", repeated("1+") + "1",
        repeated("1<") + "1", repeated("a and ") + "a", repeated("1 if 1 else ") + "1",
        repeated("2**") + "1", repeated("max(") + "1" + repeated(")")}) {
    const auto parsed = Expr::Parse(text);
    if (parsed) (void)parsed->Evaluate({});
    FuzzModel("{\"flops\": \"" + text + "\"}");
  }
}

TEST(Mutation, LongExpressionsOfUsefulLengthAreRead) {
  std::string text = "1";
  for (int i = 0; i < 450; ++i) text += " + 1";
  EXPECT_EQ(Expr::Parse(text)->EvaluateInt({}).value(), 451);
}

}  // namespace
}  // namespace atunner
