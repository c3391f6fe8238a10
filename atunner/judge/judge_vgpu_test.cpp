// The judge in this process and the judge in a runner say the same of the same candidate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/judge/local_judge.h"
#include "atunner/judge/runner_judge.h"
#include "atunner/model/json/json.h"
#include "atunner/operators/operator.h"
#include "atunner/vgpu/virtual_gpu.h"
#include "tests/threats/hostile.h"

namespace atunner {
namespace {

constexpr const char* kVirtualRunner = "__virtual_runner";

class TwoJudges : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeNvrtcCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
    RunnerOptions options;
    options.worker.arguments = {kVirtualRunner};
    options.examine_timeout_seconds = 60;
    remote_ = std::make_unique<RunnerJudge>(options);
    local_ = std::make_unique<LocalJudge>(gpu_, nullptr, &gpu_, *compiler_);
    const JudgeTask task{spec_, 5, 10};
    ASSERT_TRUE(local_->Begin(task));
    ASSERT_TRUE(remote_->Begin(task));
  }
  CandidateKernel Compile(const std::string& text, uint32_t shared = 0) {
    CompileRequest request;
    request.source.text = text;
    request.entries = {"k"};
    request.arch = gpu_.arch();
    const CompileOutcome outcome = compiler_->Compile(request).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    LaunchStep step;
    step.entry = "k";
    step.grid[0] = Expr::MustParse("rows");
    step.block[0] = 128;
    step.shared_bytes = Expr(static_cast<int64_t>(shared));
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
                 ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")),
                 ArgBinding::Scalar(DType::kInt32, Expr::MustParse("cols"))};
    return {*outcome.module, {.steps = {step}}, {}};
  }
  static JudgeOrder Order() {
    return {.time = true, .thorough = false, .incumbent_ns = {}, .seed = 5};
  }

  KernelSpec spec_ =
      FindOperator("softmax")->Instantiate({{{5, 300}}, DType::kFloat32, {}}).value();
  vgpu::VirtualGpu gpu_{FindProfile("A100").value(), 2};
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<LocalJudge> local_;
  std::unique_ptr<RunnerJudge> remote_;
};

/// The checks by name and inputs. Errors differ, because each judge draws secret inputs.
std::vector<std::string> ChecksOf(const Verdict& verdict) {
  std::vector<std::string> checks;
  for (const CheckRecord& record : verdict.checks) {
    checks.push_back(record.check + ", " + record.family + (record.passed ? "" : ": failed"));
  }
  return checks;
}

TEST_F(TwoJudges, AgreeOnAnHonestKernel) {
  const CandidateKernel honest = Compile(HonestSoftmax());
  const auto here = local_->Examine(honest, Order());
  const auto there = remote_->Examine(honest, Order());
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->verdict.kind, VerdictKind::kCorrect) << here->verdict.reason;
  EXPECT_EQ(there->verdict.kind, VerdictKind::kCorrect) << there->verdict.reason;
  EXPECT_EQ(ChecksOf(here->verdict), ChecksOf(there->verdict));
  ASSERT_TRUE(here->estimate && there->estimate);
  EXPECT_EQ(ToJson(*here->estimate).dump(), ToJson(*there->estimate).dump());
  EXPECT_GT(here->estimate->time_ns, 0);
  EXPECT_FALSE(here->measurement) << "nothing was measured";
  const double full = gpu_.profile().tdp_watts * here->estimate->time_ns * 1e-9;
  EXPECT_GT(here->estimate->energy_joules, 0.3 * full - 1e-15);
  EXPECT_LT(here->estimate->energy_joules, full);
}

TEST_F(TwoJudges, AgreeOnEveryHostileCandidate) {
  int judged = 0;
  for (const Hostile& hostile : HostileCandidates()) {
    // wait, no more
    if (std::strcmp(hostile.id, "S1-hang") == 0 || std::strcmp(hostile.id, "S1-print") == 0)
      continue;
    const CandidateKernel candidate = Compile(hostile.body ? hostile.body : HonestSoftmax(),
                                              hostile.double_shared ? 400000 : 0);
    const auto here = local_->Examine(candidate, Order());
    const auto there = remote_->Examine(candidate, Order());
    ASSERT_TRUE(here) << hostile.id << ": " << here.error().ToString();
    ASSERT_TRUE(there) << hostile.id << ": " << there.error().ToString();
    EXPECT_NE(here->verdict.kind, VerdictKind::kCorrect) << hostile.id;
    // Which check fails first, and how, may depend on the secret inputs and poisons.
    EXPECT_NE(there->verdict.kind, VerdictKind::kCorrect) << hostile.id;
    EXPECT_FALSE(here->estimate || there->estimate)
        << hostile.id << ": no number for what is not proven";
    ++judged;
  }
  EXPECT_GE(judged, 20);
}

TEST_F(TwoJudges, PredictWhatIsTooLargeToExecuteAndSayThatNothingWasCompared) {
  const KernelSpec large =
      FindOperator("softmax")->Instantiate({{{16384, 4096}}, DType::kFloat32, {}}).value();
  ASSERT_TRUE(local_->Begin({large, 5, 20}) && remote_->Begin({large, 5, 20}));
  const CandidateKernel candidate = Compile(HonestSoftmax());
  const auto here = local_->Examine(candidate, Order());
  const auto there = remote_->Examine(candidate, Order());
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->verdict.kind, VerdictKind::kUnchecked) << here->verdict.reason;
  EXPECT_EQ(there->verdict.kind, VerdictKind::kUnchecked) << there->verdict.reason;
  EXPECT_FALSE(here->verdict.correct());
  EXPECT_TRUE(here->verdict.checks.empty());
  ASSERT_TRUE(here->estimate && there->estimate);
  EXPECT_GT(here->estimate->time_ns, 0);
  // the same binary at a small size: nothing is too large
  CandidateKernel checked = Compile(HonestSoftmax());
  checked.check_dims = {{{"rows", 5}, {"cols", 300}}};
  EXPECT_TRUE(local_->Examine(checked, Order())->verdict.correct());
}

TEST_F(TwoJudges, VerifyWithoutTimingWhenAskedTo) {
  JudgeOrder order = Order();
  order.time = false;
  const auto answer = local_->Examine(Compile(HonestSoftmax()), order);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->verdict.correct());
  EXPECT_FALSE(answer->estimate);
}

TEST_F(TwoJudges, DoNotCompareOnADeviceThatPredicts) {
  const CandidateKernel honest = Compile(HonestSoftmax());
  const auto here = local_->Compare(honest, honest, 3, 1);
  const auto there = remote_->Compare(honest, honest, 3, 1);
  ASSERT_FALSE(here);
  ASSERT_FALSE(there);
  EXPECT_EQ(here.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(there.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(local_->CompareVendor("cuBLAS", honest, 3, 1)->note, "runs on a real GPU only");
  EXPECT_EQ(remote_->CompareVendor("cuBLAS", honest, 3, 1)->note, "runs on a real GPU only");
}

int ServeVirtualGpu() {
  vgpu::VirtualGpu gpu(FindProfile("A100").value(), 2);
  auto compiler = MakeNvrtcCompiler();
  if (!compiler) return 3;
  LocalJudge judge(gpu, nullptr, &gpu, **compiler);
  return ServeJudge(judge);
}

}  // namespace
}  // namespace atunner

int main(int argc, char** argv) {
  if (argc >= 2 && std::strcmp(argv[1], atunner::kVirtualRunner) == 0)
    return atunner::ServeVirtualGpu();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
