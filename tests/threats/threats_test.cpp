// The candidates of the threat table must not be called correct, neither on the virtual GPU nor on
// a real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "atunner/base/clock.h"
#include "atunner/compile/cached_compiler.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"
#include "atunner/judge/runner_judge.h"
#include "atunner/operators/operator.h"
#include "tests/threats/hostile.h"

namespace atunner {
namespace {

KernelSpec Spec(int64_t rows = 9, int64_t cols = 509) {
  return FindOperator("softmax")->Instantiate({{{rows, cols}}, DType::kFloat32, {}}).value();
}

LaunchPlan Plan(bool too_much_shared) {
  LaunchStep step;
  step.entry = "k";
  step.grid[0] = Expr::MustParse("rows");
  step.block[0] = 128;
  if (too_much_shared) step.shared_bytes = 400000;
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse("cols"))};
  return {.steps = {step}};
}

class Threats : public testing::Test {
 protected:
  /// `real`: use the machine's GPU, else the virtual one.
  void Open(bool real) {
    auto made = MakeNvrtcCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
    DeviceProfile profile = FindProfile("A100").value();
    int index = -1;
    if (real) {
      const auto devices = ListRealDevices();
      if (!devices) GTEST_SKIP() << "[atunner] every test skipped: " << devices.error().what;
      profile = devices->front().profile;
      index = devices->front().index;
    }
    arch_ = profile.Arch();
    RunnerOptions options;
    // Set when the test was built on another machine than it runs on.
    const char* moved = std::getenv("ATUNNER_EXECUTABLE");
    options.worker.executable = moved ? moved : ATUNNER_EXECUTABLE;
    options.worker.arguments = {"__runner", profile.name, std::to_string(index)};
    options.examine_timeout_seconds = 15;
    judge_ = std::make_unique<RunnerJudge>(options);
    ASSERT_TRUE(judge_->Begin({Spec(), 1, 3}));
  }

  /// The small size for the virtual GPU is the task's own size, so that every check uses the size
  /// that is timed.
  CandidateKernel Candidate(const std::string& text, bool too_much_shared = false) {
    CompileRequest request;
    request.source.name = "hostile.cu";
    request.source.text = text;
    request.entries = {"k"};
    request.arch = arch_;
    const CompileOutcome outcome = compiler_->Compile(request).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    return {*outcome.module, Plan(too_much_shared), {}};
  }

  Verdict Judge(const std::string& text, bool too_much_shared) {
    auto answer = judge_->Examine(Candidate(text, too_much_shared),
                                  {.time = true, .thorough = false, .incumbent_ns = {}, .seed = 1});
    EXPECT_TRUE(answer.has_value()) << answer.error().ToString();
    return answer ? answer->verdict : Verdict{VerdictKind::kInconclusive, "", {}, false};
  }

  void CatchAll(bool real) {
    Open(real);
    if (IsSkipped() || HasFatalFailure()) return;
    EXPECT_EQ(Name(Judge(HonestSoftmax(), false).kind), Name(VerdictKind::kCorrect))
        << "the honest kernel must pass";
    for (const Hostile& hostile : HostileCandidates()) {
      const std::string text = hostile.body ? hostile.body : HonestSoftmax();
      const Verdict verdict = Judge(text, hostile.double_shared);
      const auto& allowed = real ? hostile.caught_real : hostile.caught_virtual;
      EXPECT_TRUE(std::ranges::find(allowed, verdict.kind) != allowed.end())
          << hostile.id << " (" << hostile.what << ") was judged " << Name(verdict.kind) << ": "
          << verdict.reason;
      std::printf("%-18s %-18s %s\n", hostile.id, std::string(Name(verdict.kind)).c_str(),
                  verdict.reason.substr(0, 110).c_str());
    }
    EXPECT_EQ(Name(Judge(HonestSoftmax(), false).kind), Name(VerdictKind::kCorrect))
        << "the judge survives them all";
  }

  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<RunnerJudge> judge_;
  std::string arch_;
};

#ifdef ATUNNER_THREATS_ON_GPU
TEST_F(Threats, AreCaughtOnTheRealGpu) { CatchAll(true); }

// T1. The kernel is correct. If the flush left its 16 MiB in L2 it would be several times faster
// than the plain one; the test makes no other claim about speed.
TEST_F(Threats, PinnedInputIsFlushedLikeAnyOther) {
  Open(true);
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(judge_->Begin({Spec(2048, 2048), 1, 3}));
  const auto comparison = judge_->Compare(Candidate(HonestSoftmax()), Candidate(PinningSoftmax()),
                                          11, 1);
  ASSERT_TRUE(comparison) << comparison.error().ToString();
  std::printf("T1                 pinning gains %.3f [%.3f, %.3f]\n", comparison->ratio,
              comparison->low, comparison->high);
  EXPECT_LT(comparison->low, 1.15);
}
#else
TEST_F(Threats, AreCaughtOnTheVirtualGpu) { CatchAll(false); }
#endif

}  // namespace
}  // namespace atunner
