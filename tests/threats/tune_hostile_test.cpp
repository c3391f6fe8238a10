// A whole tuning run with the real judge on the virtual GPU, in which more than twenty candidates
// cheat. A correct one must win.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/judge/runner_judge.h"
#include "atunner/operators/operator.h"
#include "atunner/tune/tune_session.h"
#include "tests/threats/hostile.h"

namespace atunner {
namespace {

/// A schedule whose only parameter chooses among the hostile candidates and three correct ones.
class HostileSchedule : public ScheduleTemplate {
 public:
  HostileSchedule() {
    spec_ = FindOperator("softmax")->Instantiate({{{9, 509}}, DType::kFloat32, {}}).value();
    Parameter who{"who", {}, ""};
    // Correct kernels of different speed: each repetition computes the result again.
    for (int repeats : {8, 1, 3}) {
      const std::string name = "honest-" + std::to_string(repeats);
      who.values.emplace_back(name);
      sources_[name] = HonestSoftmax();
      const size_t brace = sources_[name].rfind("  honest_row(");
      sources_[name].insert(brace,
                            "  for (int i = 1; i < " + std::to_string(repeats) +
                                "; ++i) { honest_row(x + at, y + at, cols); __syncthreads(); }\n");
    }
    for (const Hostile& hostile : HostileCandidates()) {
      who.values.emplace_back(std::string(hostile.id));
      sources_[hostile.id] = hostile.body ? hostile.body : HonestSoftmax();
      if (hostile.double_shared) greedy_ = hostile.id;
    }
    space_.parameters = {who};
  }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return {{std::string("C1-nothing")}}; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const std::string who = ToString(configuration.values[0]);
    RenderedKernel kernel;
    kernel.source.name = who + ".cu";
    kernel.source.text = sources_.at(who);
    LaunchStep step;
    step.entry = "k";
    step.grid[0] = Expr::MustParse("rows");
    step.block[0] = 128;
    if (who == greedy_) step.shared_bytes = 400000;
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
                 ArgBinding::Scalar(DType::kInt64, Expr::MustParse("rows")),
                 ArgBinding::Scalar(DType::kInt32, Expr::MustParse("cols"))};
    kernel.plan.steps = {step};
    return kernel;
  }

 private:
  KernelSpec spec_;
  ParameterSpace space_;
  std::map<std::string, std::string> sources_;
  std::string greedy_;
};

TEST(TuneAmongHostiles, EndsWithTheFastestHonestKernel) {
  auto compiler = MakeNvrtcCompiler();
  if (!compiler) GTEST_SKIP() << compiler.error().ToString();
  const HostileSchedule schedule;
  ASSERT_GE(schedule.space().parameters[0].values.size(), 23u) << "twenty of them cheat";
  RunnerOptions options;
  const char* moved = std::getenv("ATUNNER_EXECUTABLE");
  options.worker.executable = moved ? moved : ATUNNER_EXECUTABLE;
  options.worker.arguments = {"__runner", "A100", "-1"};
  options.examine_timeout_seconds = 6;  // those that never end are killed
  RunnerJudge judge(options);
  TuneRequest request;
  request.schedule = &schedule;
  request.profile = FindProfile("A100").value();
  request.arch = request.profile.Arch();
  request.strategy = "random";
  request.seed = 3;
  TuneSession session(request, **compiler, {&judge}, SystemClock());
  const auto result = session.Run(nullptr, {}, {}, [](const TuneEvent&) {});
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->trials.size(), schedule.space().parameters[0].values.size())
      << "the run went on to its end";
  for (const Trial& trial : result->trials) {
    const std::string who = ToString(trial.configuration().values[0]);
    EXPECT_EQ(trial.verdict.correct(), who.starts_with("honest"))
        << who << ": " << trial.verdict.reason;
    EXPECT_EQ(trial.ObjectiveNs().has_value(), who.starts_with("honest")) << who;
  }
  ASSERT_TRUE(result->best);
  EXPECT_EQ(ToString(result->best->configuration().values[0]), "honest-1");
  EXPECT_TRUE(result->best->verdict.correct());
}

}  // namespace
}  // namespace atunner
