// Every kind of job in this process, with fakes at the four doors: nothing is printed and no
// process is started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "atunner/jobs/kernels/count_lines.h"
#include "atunner/jobs/kernels/predict.h"
#include "atunner/jobs/kernels/sanitize.h"
#include "atunner/jobs/runs/reports.h"
#include "atunner/jobs/runs/tuning.h"
#include "atunner/jobs/runs/verify.h"
#include "atunner/jobs/testing/fake_services_test.h"

namespace atunner::jobs {
namespace {

using testing::HasSubstr;

constexpr const char* kToml = R"(name = "fill"
source = "fill.cu"
[sizes]
n = 32
[parameters]
unroll = [1, 2, 4]
[default]
unroll = 1
[[argument]]
name = "y"
type = "float32"
shape = "n"
role = "out"
[[launch]]
kernel = "fill"
grid = 1
block = 32
arguments = ["y"]
)";
constexpr const char* kSource = R"(#define UNROLL 4
extern "C" __global__ void fill(float* y) { y[threadIdx.x] = threadIdx.x; }
int main() {
  float* y;
  cudaMalloc(&y, 32 * sizeof(float));
  fill<<<1, 32>>>(y);
}
)";

/// True if this process never had a child.
bool HadNoChild() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const bool none_now = ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
  return none_now && used.ru_maxrss == 0 && used.ru_minflt == 0;
}

class Jobs : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomic(File("fill.toml"), kToml));
    ASSERT_TRUE(WriteFileAtomic(File("fill.cu"), kSource));
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
  }
  void TearDown() override {
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_TRUE(HadNoChild());
  }

  Path File(const std::string& name) const { return fakes_.folder.path() / name; }
  Services& services() { return fakes_.services; }
  EventSink Events() {
    return [this](const Event& event) {
      const Json json = ToJson(event);
      names_.push_back(json["event"]);
      if (const auto* stage = std::get_if<StageEvent>(&event)) stages_.push_back(*stage);
      if (stop_after_trials_ > 0 && std::ranges::count(names_, "trial") == stop_after_trials_)
        stop_.request_stop();
    };
  }
  TuningOptions Tuning(int64_t trials) const {
    TuningOptions options;
    options.target.gpu = "A100";
    options.budget = {.trials = trials, .seconds = {}};
    return options;
  }
  OptimizeRequest Relu(int64_t trials) const {
    OptimizeRequest request;
    request.task.operator_name = "relu";
    request.task.shapes = {{1024, 64}};
    request.tuning = Tuning(trials);
    return request;
  }
  KernelRequest Fill() const {
    KernelRequest request;
    request.file = File("fill.toml");
    return request;
  }

  FakeServices fakes_;
  std::vector<std::string> names_;  ///< of the events
  std::vector<StageEvent> stages_;
  std::stop_source stop_;
  int64_t stop_after_trials_ = 0;
};

TEST_F(Jobs, OptimizeWritesAnArtifactAndAReport) {
  OptimizeRequest request = Relu(5);
  request.tuning.out = File("best");
  const auto result = Optimize(request, services(), Events(), {});
  ASSERT_TRUE(result) << result.error().ToString();
  ASSERT_EQ(result->runs.size(), 1u);
  EXPECT_TRUE(result->AllFound());
  EXPECT_EQ(result->runs[0].report.trials.size(), 5u);
  EXPECT_EQ(result->runs[0].artifact, File("best"));
  EXPECT_TRUE(Exists(File("best") / "manifest.json"));
  EXPECT_EQ(names_.front(), "run_started");
  EXPECT_EQ(names_.back(), "run_finished");
  EXPECT_EQ(std::ranges::count(names_, "trial"), 5);
}

TEST_F(Jobs, AnEqualRequestGoesOnWhereTheLastOneEnded) {
  const auto first = Optimize(Relu(3), services(), Events(), {});
  const auto second = Optimize(Relu(6), services(), Events(), {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->runs[0].report.run, second->runs[0].report.run);
  EXPECT_EQ(second->runs[0].report.trials.size(), 6u);
  OptimizeRequest fresh = Relu(2);
  fresh.tuning.fresh = true;
  const auto third = Optimize(fresh, services(), Events(), {});
  ASSERT_TRUE(third);
  EXPECT_EQ(third->runs[0].report.trials.size(), 2u);
}

TEST_F(Jobs, AStopTokenEndsARunWithWhatWasFound) {
  stop_after_trials_ = 3;
  const auto result = Optimize(Relu(1000), services(), Events(), stop_.get_token());
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_LT(result->runs[0].report.trials.size(), 10u);
  EXPECT_EQ(result->runs[0].report.stop_reason, "stopped by the user");
  EXPECT_TRUE(result->AllFound());
}

TEST_F(Jobs, SeveralSizesShareAFolder) {
  OptimizeRequest request;
  request.task.graph = GraphText{
      "graph twice\ndim n = 1..4096\ninput x: float32[n]\ny = x * 2\noutput y\n", "twice.atg"};
  request.task.dims = {{"n", {16, 32}}};
  request.tuning = Tuning(2);
  const auto refused = Optimize(request, services(), Events(), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "request.dims");
  request.tuning.out = File("sizes");
  const auto result = Optimize(request, services(), Events(), {});
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->runs.size(), 2u);
  EXPECT_TRUE(Exists(File("sizes") / "n=16" / "manifest.json"));
}

TEST_F(Jobs, ErrorsNameFieldsOfTheRequest) {
  OptimizeRequest request = Relu(5);
  request.task.operator_name = "sofmax";
  const auto unknown = Optimize(request, services(), Events(), {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().where, "request.operator");
  EXPECT_EQ(unknown.error().hint, "did you mean 'softmax'?");
}

TEST_F(Jobs, TuneReadsADescription) {
  const auto result = Tune({File("fill.toml"), Tuning(3)}, services(), Events(), {});
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->runs[0].report.trials.size(), 3u);
  EXPECT_TRUE(result->runs[0].artifact.has_value());
}

TEST_F(Jobs, HardwareOptimizeSaysWhatItFoundAndTunesIt) {
  HardwareOptimizeRequest request{File("fill.cu"), "", false, Tuning(2)};
  auto found = HardwareOptimize(request, services(), Events(), {});
  ASSERT_TRUE(found) << found.error().ToString();
  ASSERT_TRUE(std::holds_alternative<UnderstoodKernel>(*found));
  EXPECT_EQ(ToJson(std::get<UnderstoodKernel>(*found))["entry"], "fill");
  request.auto_tune = true;
  found = HardwareOptimize(request, services(), Events(), {});
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_TRUE(std::get<TuningResult>(*found).AllFound());
}

TEST_F(Jobs, SanitizeFindsWhatTheKernelDoesWrong) {
  SanitizeRequest request;
  request.kernel = Fill();
  const auto clean = Sanitize(request, services(), Events(), {});
  ASSERT_TRUE(clean) << clean.error().ToString();
  ASSERT_EQ(clean->kernels.size(), 1u);
  EXPECT_TRUE(clean->kernels[0].clean());
  fakes_.compilers.beyond = 1000;
  const auto found = Sanitize(request, services(), Events(), {});
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_FALSE(found->kernels[0].clean());
}

TEST_F(Jobs, CountsOfALaunch) {
  const auto counted = CountLines({Fill()}, services(), Events());
  ASSERT_TRUE(counted) << counted.error().ToString();
  EXPECT_EQ(counted->blocks, 1u);
  EXPECT_GT(counted->counts.TotalWarpInstructions(), 0u);
}

TEST_F(Jobs, PredictEstimatesListedConfigurations) {
  PredictRequest request;
  request.file = File("fill.toml");
  request.gpu = "A100";
  const auto predicted = Predict(request, services(), Events(), {});
  ASSERT_TRUE(predicted) << predicted.error().ToString();
  EXPECT_TRUE(predicted->any());
  EXPECT_GT(predicted->kernels[0].predicted->predictions[0].estimate->time_ns, 0);
}

TEST_F(Jobs, ReportReadsTheStore) {
  ASSERT_TRUE(Optimize(Relu(4), services(), Events(), {}));
  using enum ReportRequest::Format;
  for (const auto format : {kText, kMarkdown, kHtml, kJson}) {
    const auto text = MakeReportText({"last", format}, services());
    ASSERT_TRUE(text) << text.error().ToString();
    EXPECT_THAT(*text, HasSubstr("relu"));
  }
}

TEST_F(Jobs, ReportReadsAStoreOfSchema1) {
  const Path old = Path(ATUNNER_SOURCE_DIR) / "tests/data/schema1/store.db";
  ASSERT_TRUE(WriteFileAtomic(File("runs.db"), ReadFile(old).value()));
  using enum ReportRequest::Format;
  for (const auto format : {kText, kMarkdown, kHtml, kJson}) {
    const auto text = MakeReportText({"20261127-1251-softmax", format}, services());
    ASSERT_TRUE(text) << text.error().ToString();
    EXPECT_THAT(*text, HasSubstr("softmax"));
  }
}

TEST_F(Jobs, ReportRefusesADamagedSummary) {
  ASSERT_TRUE(Optimize(Relu(2), services(), Events(), {}));
  {
    const auto store = fakes_.stores.Open();
    ASSERT_TRUE(store);
    auto run = (*store)->FindRun("last");
    ASSERT_TRUE(run);
    for (const char* damaged : {"{\"run\": ", "[1]", "{\"error\": 5}"}) {
      run->summary = damaged;
      ASSERT_TRUE((*store)->UpdateRun(*run));
      const auto text = MakeReportText({"last", ReportRequest::Format::kMarkdown}, services());
      ASSERT_FALSE(text) << damaged;
      EXPECT_THAT(text.error().ToString(), HasSubstr("damaged"));
    }
    run->summary = "{\"run\": ";
    ASSERT_TRUE((*store)->UpdateRun(*run));
  }
  EXPECT_FALSE(MakeReportText({"last", ReportRequest::Format::kJson}, services()));
}

TEST_F(Jobs, VerifyJudgesAnArtifactAgain) {
  OptimizeRequest request = Relu(2);
  request.tuning.out = File("best");
  ASSERT_TRUE(Optimize(request, services(), Events(), {}));
  const auto verified = Verify({File("best"), {"A100", false}, {}}, services());
  ASSERT_TRUE(verified) << verified.error().ToString();
  EXPECT_TRUE(verified->verdict.correct());
}

TEST_F(Jobs, StagesAreShownInOrderAndEndTheJob) {
  OptimizeRequest request = Relu(5);
  request.tuning.inspection = {{Stage::kPtx, Stage::kGraph, Stage::kSource}, Stage::kVerify};
  const auto result = Optimize(request, services(), Events(), {});
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_TRUE(result->runs.empty());
  ASSERT_EQ(stages_.size(), 3u);
  EXPECT_EQ(stages_[0].stage, Stage::kGraph);
  EXPECT_THAT(stages_[0].text, HasSubstr("relu"));
  EXPECT_THAT(stages_[1].text, HasSubstr("__global__"));
  EXPECT_THAT(stages_[2].text, HasSubstr(".entry"));
}

TEST_F(Jobs, EveryStageHasAValue) {
  OptimizeRequest request = Relu(5);
  for (int i = 0; i <= static_cast<int>(Stage::kVerify); ++i) {
    stages_.clear();
    request.tuning.inspection = {{}, static_cast<Stage>(i)};
    const auto result = Optimize(request, services(), Events(), {});
    ASSERT_TRUE(result) << result.error().ToString();
    ASSERT_EQ(stages_.size(), 1u) << "the stage to stop after is shown";
    EXPECT_EQ(stages_[0].stage, static_cast<Stage>(i));
    EXPECT_FALSE(stages_[0].text.empty());
    EXPECT_EQ(ParseStage(Name(stages_[0].stage)), stages_[0].stage);
  }
}

}  // namespace
}  // namespace atunner::jobs
