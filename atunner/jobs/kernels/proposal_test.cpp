// Proposals: what they may say, and that the task stays the problem's.
#include "atunner/jobs/kernels/proposal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/jobs/kernels/examine.h"
#include "atunner/jobs/requests/problems.h"
#include "atunner/jobs/testing/fake_services_test.h"

namespace atunner::jobs {
namespace {

using testing::HasSubstr;

class ProposalTest : public testing::Test {
 protected:
  void SetUp() override {
    ProblemRequest request;
    request.task.emplace();
    request.task->operator_name = "softmax";
    request.task->shapes = {{8, 64}};
    problem_ = OpenProblem(request, target_, [](const Event&) {}).value();
  }

  static Proposal Right() {
    LaunchStep step;
    step.entry = "f";
    step.grid[0] = Expr::MustParse("rows // ROWS");
    step.block[0] = 32;
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
                 ArgBinding::Scalar(DType::kInt32, Expr::MustParse("cols"))};
    Proposal proposal;
    proposal.kernel.source.text = "text";
    proposal.kernel.plan.steps = {step};
    proposal.space.parameters = {{"ROWS", {int64_t{1}, int64_t{2}}, "", {}, {}, {}}};
    return proposal;
  }
  std::string RefusalOf(Proposal proposal) const {
    const auto made = MakeProposedSchedule(*problem_, std::move(proposal));
    return made ? "" : made.error().ToString();
  }

  FakeServices fakes_;
  Target target_ = fakes_.devices.Choose({"A100", true}).value();
  std::unique_ptr<ScheduleTemplate> problem_;
};

TEST_F(ProposalTest, KeepsTheTaskOfTheProblem) {
  const auto made = MakeProposedSchedule(*problem_, Right()).value();
  EXPECT_EQ(made->spec().ContentDigest(), problem_->spec().ContentDigest());
  EXPECT_EQ(made->Naive()->ContentDigest(), problem_->Naive()->ContentDigest());
  const Configuration two = ConfigurationOf(*made, "ROWS=2").value();
  const RenderedKernel kernel = made->Render(two).value();
  EXPECT_EQ(kernel.source.defines,
            (std::vector<std::pair<std::string, std::string>>{{"ROWS", "2"}}));
  EXPECT_EQ(Resolve(kernel.plan, made->spec().dims, {})->steps[0].grid, (Dim3{4, 1, 1}));
  EXPECT_THAT(made->space().Describe(two), HasSubstr("ROWS=2, proposal="));
}

TEST_F(ProposalTest, OtherSourcesAreOtherSpaces) {
  Proposal other = Right();
  other.kernel.source.text += " ";
  const auto a = MakeProposedSchedule(*problem_, Right()).value();
  const auto b = MakeProposedSchedule(*problem_, std::move(other)).value();
  EXPECT_NE(a->space().DigestOfConfiguration(a->Default()),
            b->space().DigestOfConfiguration(b->Default()));
}

TEST_F(ProposalTest, RefusesLaunchesThatDoNotFit) {
  EXPECT_EQ(RefusalOf(Right()), "");
  Proposal unknown = Right();
  unknown.kernel.plan.steps[0].args[0].name = "z";
  EXPECT_THAT(RefusalOf(std::move(unknown)), HasSubstr("'z' is no argument of the problem"));
  Proposal reads = Right();
  reads.kernel.plan.steps[0].args.erase(reads.kernel.plan.steps[0].args.begin() + 1);
  EXPECT_THAT(RefusalOf(std::move(reads)), HasSubstr("no launch is given an output"));
  Proposal wide = Right();
  wide.kernel.plan.steps[0].block[0] = 4096;
  EXPECT_NE(RefusalOf(std::move(wide)), "");
  Proposal taken = Right();
  taken.space.parameters[0].name = kProposalParameter;
  EXPECT_THAT(RefusalOf(std::move(taken)), HasSubstr("'proposal' is not free"));
  Proposal broken = Right();
  broken.space.constraints.push_back({Expr::MustParse("ROWS > 1"), ""});
  EXPECT_THAT(RefusalOf(std::move(broken)), HasSubstr("breaks a constraint"));
}

TEST_F(ProposalTest, RefusesConfigurationsThatAreNone) {
  const auto made = MakeProposedSchedule(*problem_, Right()).value();
  const auto refusal = [&](const char* text) {
    const auto found = ConfigurationOf(*made, text);
    return found ? "" : found.error().ToString();
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_THAT(refusal("ROW=1"), HasSubstr("did you mean 'ROWS'?"));
  EXPECT_THAT(refusal("ROWS=3"), HasSubstr("use 1, 2"));
}

TEST_F(ProposalTest, IsJudgedAndTimed) {
  const auto made = MakeProposedSchedule(*problem_, Right()).value();
  const Examination found = Examine(*made, "", {.time = true}, target_, fakes_.services).value();
  EXPECT_TRUE(found.verdict.correct());
  EXPECT_EQ(found.evidence, Evidence::kPredicted);
  EXPECT_EQ(found.Ns(), 1e6) << "as the fake judge says";
  EXPECT_EQ(found.resources.size(), 1u);
  const auto baseline = ExamineBaseline(*made, {.time = true}, target_, fakes_.services).value();
  EXPECT_TRUE(baseline && baseline->Ns());
  EXPECT_TRUE(CompileConfiguration(*made, "ROWS=2", target_, fakes_.services)->outcome.ok());
}

TEST(Problems, NameExactlyOneThing) {
  FakeServices fakes;
  const Target target = fakes.devices.Choose({"A100", true}).value();
  EXPECT_FALSE(OpenProblem({}, target, [](const Event&) {}));
  ProblemRequest both;
  both.task.emplace();
  both.file = "x.cu";
  EXPECT_FALSE(OpenProblem(both, target, [](const Event&) {}));
}

}  // namespace
}  // namespace atunner::jobs
