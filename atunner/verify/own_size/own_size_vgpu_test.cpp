// A user's kernel at the task's own size: what is left out there is found, or the verdict says that
// only a sample ran.
#include <gmock/gmock.h>

#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kElements = 32 * 3000 - 5;

/// One launch of `k(x, y, n)` over n elements.
LaunchPlan PlanOf(const char* grid, const char* block, DType index = DType::kInt32) {
  LaunchStep step;
  step.entry = "k";
  step.grid[0] = Expr::MustParse(grid);
  step.block[0] = Expr::MustParse(block);
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(index, Expr::MustParse("n"))};
  return {.steps = {step}};
}

std::string Source(const std::string& body, const char* type = "float", const char* index = "int") {
  return fmt::format("extern \"C\" __global__ void k(const {0}* x, {0}* y, {1} n) {{\n{2}\n}}",
                     type, index, body);
}

constexpr const char* kIndex =
    "const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;";

class OwnSizeTest : public VirtualGpuTest {
 protected:
  KernelSpec Task(const std::string& source, LaunchPlan plan, int64_t n = kElements,
                  DType dtype = DType::kFloat32, Role role = Role::kOutput) {
    KernelSpec spec;
    spec.name = "mine";
    spec.dims = {{"n", n}};
    const auto tensor = [&](const char* name, Role of) {
      return ArgSpec{.name = name,
                     .role = of,
                     .dtype = dtype,
                     .shape = {Expr::MustParse("n")},
                     .value = {},
                     .fill = {}};
    };
    spec.args = {tensor("x", Role::kInput), tensor("y", role)};
    spec.oracle.kind = Oracle::Kind::kKernel;
    spec.oracle.kernel.emplace();
    spec.oracle.kernel->source.text = source;
    spec.oracle.kernel->plan = std::move(plan);
    return spec;
  }

  Verdict Judge(const KernelSpec& spec, const std::string& source, LaunchPlan plan) {
    CandidateKernel candidate = Compile(source, std::move(plan));
    candidate.check_dims = check_dims_;
    auto verifier = Verifier::Make(gpu_, *compiler_, spec, options_);
    EXPECT_TRUE(verifier.has_value()) << verifier.error().ToString();
    const auto verified = (*verifier)->Verify(
        std::make_shared<const CandidateKernel>(std::move(candidate)), level_);
    EXPECT_TRUE(verified.has_value()) << verified.error().ToString();
    const auto* refused = std::get_if<Verdict>(&*verified);
    return refused ? *refused : std::get<VerifiedKernel>(*verified).verdict();
  }

  /// Nothing runs but samples.
  void AllowSamplesOnly() { options_.work = {.compare_all = 0, .screening = 0, .final = 0}; }

  VerifyOptions options_{.work = {.compare_all = 0}};
  VerifyLevel level_ = VerifyLevel::kComplete;
  std::vector<Dims> check_dims_;
  const std::string as_given_ = Source(std::string(kIndex) + "if (i < n) y[i] = 2 * x[i] + 1;");
  const LaunchPlan plan_ = PlanOf("ceil_div(n, 32)", "32");
  const KernelSpec spec_ = Task(as_given_, plan_);
};

TEST_F(OwnSizeTest, AnotherBlockSizeIsCorrectIfAllBlocksRan) {
  const std::string strided = Source(std::string(kIndex) +
                                     "for (long long j = i; j < n; j += gridDim.x * blockDim.x) "
                                     "y[j] = 1 + x[j] * 2;");
  for (const LaunchPlan& plan : {PlanOf("ceil_div(n, 256)", "256"), PlanOf("50", "64")}) {
    const Verdict verdict = Judge(spec_, strided, plan);
    EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
    EXPECT_TRUE(verdict.coverage.whole());
  }
}

TEST_F(OwnSizeTest, WhatEachOfSeveralLaunchesWritesCounts) {
  LaunchPlan halves = PlanOf("ceil_div(n, 64)", "64");
  halves.steps.push_back(halves.steps.front());
  halves.steps.front().entry = "first";
  const auto half = [](const char* name, const char* condition) {
    return fmt::format(
        "extern \"C\" __global__ void {}(const float* x, float* y, int n) {{ {} if (i < n && {}) "
        "y[i] = 2 * x[i] + 1; }}\n",
        name, kIndex, condition);
  };
  const std::string first = half("first", "i % 2 == 0"), last = half("k", "i % 2 == 1");
  EXPECT_EQ(Judge(spec_, first + last, halves).kind, VerdictKind::kCorrect);
  const std::string less = half("first", "i % 2 == 0 && i != 7000");
  EXPECT_EQ(Judge(spec_, less + last, halves).kind, VerdictKind::kNotWritten);
}

TEST_F(OwnSizeTest, ElementsThatAreLeftOutAreFound) {
  const std::string whole_if = std::string(kIndex) + "if (i < n && {}) y[i] = 2 * x[i] + 1;";
  const std::vector<std::pair<std::string, LaunchPlan>> wrong = {
      {as_given_, PlanOf("ceil_div(n, 64)", "32")},
      {as_given_, PlanOf("min(ceil_div(n, 32), 1024)", "32")},
      {Source(fmt::format(fmt::runtime(whole_if), "i % 4 != 3")), plan_},
      {Source(fmt::format(fmt::runtime(whole_if), "threadIdx.x == 0")), plan_},
      {Source(fmt::format(fmt::runtime(whole_if), "blockIdx.x % 8 != 5")), plan_},
      {Source(fmt::format(fmt::runtime(whole_if), "i != 54321")), plan_},
      {Source(fmt::format(fmt::runtime(whole_if), "n < 1000")), plan_},
  };
  check_dims_ = {{{"n", 901}}};
  for (const auto& [source, plan] : wrong) {
    const Verdict verdict = Judge(spec_, source, plan);
    EXPECT_EQ(verdict.kind, VerdictKind::kNotWritten) << verdict.reason << source;
  }
}

TEST_F(OwnSizeTest, AWrongElementIsFoundAmongAll) {
  check_dims_ = {{{"n", 901}}};
  const Verdict verdict = Judge(
      spec_, Source(std::string(kIndex) + "if (i < n) y[i] = 2 * x[i] + 1 + (i == 70001);"), plan_);
  EXPECT_EQ(verdict.kind, VerdictKind::kWrongResult);
  EXPECT_THAT(verdict.reason, HasSubstr("element 70001 of 'y'"));
}

TEST_F(OwnSizeTest, ASampleIsNotCalledCorrect) {
  AllowSamplesOnly();
  check_dims_ = {{{"n", 901}}};
  const Verdict verdict = Judge(spec_, as_given_, PlanOf("ceil_div(n, 128)", "128"));
  EXPECT_EQ(verdict.kind, VerdictKind::kSampled);
  EXPECT_FALSE(verdict.correct());
  EXPECT_TRUE(verdict.stands());
  EXPECT_GT(verdict.coverage.compared, 0.004);
  EXPECT_LT(verdict.coverage.compared, 0.02);
  EXPECT_LT(verdict.coverage.executed, 0.2);
  EXPECT_THAT(verdict.reason, HasSubstr("% of the blocks ran"));
  EXPECT_THAT(verdict.reason, HasSubstr("n = 901"));
}

TEST_F(OwnSizeTest, ASampleFindsDifferencesAndFaults) {
  AllowSamplesOnly();
  check_dims_ = {{{"n", 901}}};
  const std::string index(kIndex);
  const auto judge = [&](const std::string& body) {
    return Judge(spec_, Source(index + body), plan_).kind;
  };
  EXPECT_EQ(judge("if (i < n) y[i] = 2 * x[i] + (n > 1000 ? 1.01f : 1.0f);"),
            VerdictKind::kWrongResult);
  EXPECT_EQ(judge("if (i < n || n > 1000) y[i] = 2 * x[i < n ? i : 0] + 1;"),
            VerdictKind::kOutOfBounds);
}

TEST_F(OwnSizeTest, WithoutASmallerSizeTheFamiliesAreSampledToo) {
  const Verdict verdict = Judge(spec_, as_given_, plan_);
  EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
  EXPECT_GE(verdict.checks.size(), 4u);
  AllowSamplesOnly();
  EXPECT_EQ(Judge(spec_, as_given_, plan_).kind, VerdictKind::kSampled);
  // Right on normal inputs, wrong where one is large.
  const std::string clips = Source(std::string(kIndex) +
                                   "if (i < n) y[i] = 2 * fminf(fmaxf(x[i], -50.0f), 50.0f) + 1;");
  options_.work = {.compare_all = 0};
  EXPECT_EQ(Judge(spec_, clips, plan_).kind, VerdictKind::kWrongResult);
}

TEST_F(OwnSizeTest, BlocksThatAddToEachOthersResultsAreComparedAsAWhole) {
  const std::string adds = Source(
      std::string(kIndex) + "if (i < n) atomicAdd(&y[i % 1000], (int)(x[i] % 8));", "int");
  const std::string half = Source(
      std::string(kIndex) + "if (i < n / 2) atomicAdd(&y[i % 1000], (int)(x[i] % 8));", "int");
  const KernelSpec spec = Task(adds, plan_, kElements, DType::kInt32, Role::kInOut);
  EXPECT_EQ(Judge(spec, adds, PlanOf("ceil_div(n, 96)", "96")).kind, VerdictKind::kCorrect);
  EXPECT_EQ(Judge(spec, half, plan_).kind, VerdictKind::kWrongResult);
  AllowSamplesOnly();
  check_dims_ = {{{"n", 901}}};
  const Verdict sampled = Judge(spec, adds, PlanOf("ceil_div(n, 96)", "96"));
  EXPECT_EQ(sampled.kind, VerdictKind::kSampled) << sampled.reason;
  EXPECT_EQ(sampled.coverage.compared, 0) << "parts of sums say nothing";
}

TEST_F(OwnSizeTest, WithNothingComparedTheVerdictIsUnchecked) {
  AllowSamplesOnly();
  const std::string adds = Source(
      std::string(kIndex) + "if (i < n) atomicAdd(&y[i % 1000], (int)(x[i] % 8));", "int");
  const KernelSpec spec = Task(adds, plan_, kElements, DType::kInt32, Role::kInOut);
  const Verdict verdict = Judge(spec, adds, PlanOf("ceil_div(n, 96)", "96"));
  EXPECT_EQ(verdict.kind, VerdictKind::kUnchecked) << verdict.reason;
}

TEST_F(OwnSizeTest, AnIndexOf32BitsFailsAtThreeBillionElements) {
  constexpr const char* kLoop =
      "for ({0} i = blockIdx.x * blockDim.x + threadIdx.x; i < ({0})n; i += gridDim.x * "
      "blockDim.x) y[i] = x[i] + 1;";
  const auto source = [&](const char* index) {
    return Source(fmt::format(fmt::runtime(kLoop), index), "unsigned char", "long long");
  };
  const LaunchPlan plan = PlanOf("4096", "256", DType::kInt64);
  const KernelSpec spec = Task(source("long long"), plan, 3'000'000'000, DType::kUInt8);
  options_ = {};
  check_dims_ = {{{"n", 100'000}}};
  const Verdict short_index = Judge(spec, source("int"), plan);
  EXPECT_EQ(short_index.kind, VerdictKind::kNotWritten) << short_index.reason;
  const Verdict right = Judge(spec, source("long long"), plan);
  EXPECT_EQ(right.kind, VerdictKind::kSampled) << right.reason;
  EXPECT_GT(right.coverage.compared, 0.001);
}

TEST_F(OwnSizeTest, AFinalMayDoMoreWorkThanAScreening) {
  options_.work = {.compare_all = 0, .screening = 1000, .final = 1e7};
  EXPECT_EQ(Judge(spec_, as_given_, plan_).kind, VerdictKind::kSampled);
  level_ = VerifyLevel::kFinal;
  EXPECT_EQ(Judge(spec_, as_given_, plan_).kind, VerdictKind::kCorrect);
}

}  // namespace
}  // namespace atunner
