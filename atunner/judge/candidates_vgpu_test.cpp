// Whole kernels, in CUDA C++ and in PTX, pass the same compiler, verifier and time model as the
// configurations of a template.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/judge/candidate_compiler.h"
#include "atunner/judge/local_judge.h"
#include "atunner/operators/operator.h"
#include "atunner/vgpu/virtual_gpu.h"
#include "tests/threats/hostile.h"

namespace atunner {
namespace {

LaunchPlan SoftmaxPlan(const std::string& entry) {
  LaunchStep step;
  step.entry = entry;
  step.grid[0] = Expr::MustParse("rows");
  step.block[0] = 128;
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse("cols"))};
  return {.steps = {step}};
}

/// The first result of each row is wrong.
std::string WrongSoftmax() {
  std::string text = HonestSoftmax();
  const std::string call = "  honest_row(x + at, y + at, cols);\n";
  return text.replace(text.find(call), call.size(),
                      call + "  __syncthreads();\n  if (threadIdx.x == 0) y[at] = 0.5f;\n");
}

/// One parameter that has no influence.
class SoftmaxSchedule : public ScheduleTemplate {
 public:
  SoftmaxSchedule() { space_.parameters = {{"variant", {int64_t{0}, int64_t{1}}, ""}}; }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return {{int64_t{0}}}; }
  Result<RenderedKernel> Render(const Configuration&) const override {
    RenderedKernel kernel;
    kernel.source.text = HonestSoftmax();
    kernel.plan = SoftmaxPlan("k");
    return kernel;
  }

 private:
  KernelSpec spec_ =
      FindOperator("softmax")->Instantiate({{{5, 300}}, DType::kFloat32, {}}).value();
  ParameterSpace space_;
};

class CandidatesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeNvrtcCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    nvrtc_ = *std::move(made);
    candidates_.emplace(schedule_, *nvrtc_, std::string(gpu_.arch()));
    judge_ = std::make_unique<LocalJudge>(gpu_, nullptr, &gpu_, *nvrtc_);
    ASSERT_TRUE(judge_->Begin({schedule_.spec(), 5, 10}));
  }
  static Candidate Source(const std::string& text) {
    RenderedKernel kernel;
    kernel.source.text = text;
    kernel.plan = SoftmaxPlan("k");
    return MakeSourceCandidate(kernel, {"user", "by hand"});
  }
  Candidate Ptx(const std::string& text) {
    const Compiled compiled = candidates_->Compile(Source(text));
    EXPECT_TRUE(compiled.ok());
    RenderedKernel kernel;
    kernel.source.text = compiled.outcome->module->ptx;
    kernel.plan = SoftmaxPlan(compiled.outcome->module->kernels.at(0).mangled);
    return MakePtxCandidate(kernel, {"rewrite:by hand", "", compiled.candidate.id});
  }
  JudgeAnswer Judge(const Candidate& candidate) {
    const auto answer = JudgeCandidate(*judge_, *candidates_, candidate,
                                       {.incumbent_ns = {}, .seed = 5});
    EXPECT_TRUE(answer) << answer.error().ToString();
    return *answer;
  }

  SoftmaxSchedule schedule_;
  vgpu::VirtualGpu gpu_{FindProfile("A100").value(), 2};
  std::unique_ptr<Compiler> nvrtc_;
  std::optional<CandidateCompiler> candidates_;
  std::unique_ptr<LocalJudge> judge_;
};

TEST_F(CandidatesTest, RightOnesOfEveryKindAreCorrectAndTimed) {
  const Candidate configuration = MakeCandidate(schedule_.space(), schedule_.Default(),
                                                {"default", ""});
  for (const Candidate& candidate :
       {configuration, Source(HonestSoftmax()), Ptx(HonestSoftmax())}) {
    const JudgeAnswer answer = Judge(candidate);
    EXPECT_EQ(answer.verdict.kind, VerdictKind::kCorrect)
        << Name(candidate.kind()) << ": " << answer.verdict.reason;
    ASSERT_TRUE(answer.estimate) << Name(candidate.kind());
    EXPECT_GT(answer.estimate->time_ns, 0);
  }
}

TEST_F(CandidatesTest, WrongOnesAreRefused) {
  for (const Candidate& candidate : {Source(WrongSoftmax()), Ptx(WrongSoftmax())}) {
    const JudgeAnswer answer = Judge(candidate);
    EXPECT_EQ(answer.verdict.kind, VerdictKind::kWrongResult) << Name(candidate.kind());
    EXPECT_FALSE(answer.estimate);
  }
}

TEST_F(CandidatesTest, OnesThatDoNotCompileSayWhy) {
  const JudgeAnswer source = Judge(Source("__global__ void k(float* x { }"));
  EXPECT_EQ(source.verdict.kind, VerdictKind::kCompileError);
  EXPECT_FALSE(source.verdict.reason.empty());
  RenderedKernel kernel;
  kernel.source.text = ".version 8.0\n.target sm_80\nthis is no PTX\n";
  kernel.plan = SoftmaxPlan("k");
  EXPECT_EQ(Judge(MakePtxCandidate(kernel, {"user", ""})).verdict.kind, VerdictKind::kCompileError);
}

}  // namespace
}  // namespace atunner
