// The pipeline with a compiler and a device that take set times: who waits for whom. They sleep and
// do not work, so that a busy machine changes little.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "atunner/tune/tune_session.h"

namespace atunner {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr int kThreads = 8;

class Numbers : public ScheduleTemplate {
 public:
  explicit Numbers(int count) {
    spec_.name = "mine";
    Parameter parameter{.name = "id", .values = {}, .meaning = ""};
    for (int64_t i = 0; i < count; ++i) parameter.values.emplace_back(i);
    space_.parameters.push_back(parameter);
  }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return {{int64_t{0}}}; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    RenderedKernel rendered;
    rendered.source.text = ToString(configuration.values[0]);
    return rendered;
  }

 private:
  KernelSpec spec_;
  ParameterSpace space_;
};

int IdOf(const std::string& text) { return std::stoi(text); }

/// 80 ms, and every eighth 640 ms: 150 ms at the mean.
class SlowCompiler : public Compiler {
 public:
  Result<CompileOutcome> Compile(const CompileRequest& request, const std::stop_token&) override {
    begun.store(true);
    const double ms = IdOf(request.source.text) % 8 == 3 ? 640 : 80;
    std::this_thread::sleep_for(Milliseconds(ms));
    CompileOutcome outcome;
    outcome.module.emplace();
    outcome.module->ptx = request.source.text;
    outcome.module->binary = DigestOf(std::string_view(request.source.text));
    outcome.module->compile_seconds = ms / 1e3;
    return outcome;
  }
  std::string Version() const override { return "slow"; }
  std::atomic<bool> begun = false;
};

class SlowJudge : public Judge {
 public:
  explicit SlowJudge(double ms) : ms_(ms) {}
  Status Begin(const JudgeTask&) override { return {}; }
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override {
    std::this_thread::sleep_for(Milliseconds(ms_));
    JudgeAnswer answer;
    answer.verify_seconds = ms_ / 2e3;
    answer.timing_seconds = ms_ / 2e3;
    answer.measurement.emplace();
    Measurement& measurement = *answer.measurement;
    measurement.median_ns = measurement.minimum_ns = 1e9 + 1e6 * IdOf(candidate.module.ptx);
    for (double part : {0.97, 0.98, 0.99, 1.0, 1.0, 1.01, 1.02, 1.03})
      measurement.samples_ns.push_back(part * measurement.median_ns);
    measurement.low_ns = 0.97 * measurement.median_ns;
    measurement.high_ns = 1.03 * measurement.median_ns;
    if (!order.thorough && !order.incumbent_ns && !examined.insert(candidate.module.ptx).second)
      again.insert(candidate.module.ptx);
    examined.insert(candidate.module.ptx);
    ++judged;
    return answer;
  }
  Result<Comparison> Compare(const CandidateKernel&, const CandidateKernel&, int,
                             uint64_t) override {
    return Fail(ErrorCode::kUnsupported, "not here");
  }
  Result<Baseline> CompareVendor(const std::string&, const CandidateKernel&, int,
                                 uint64_t) override {
    return Fail(ErrorCode::kUnsupported, "not here");
  }
  std::set<std::string> examined;
  std::set<std::string> again;
  std::atomic<int> judged = 0;

 private:
  double ms_;
};

class PipelineTest : public testing::Test {
 protected:
  TuneResult Tune(SlowJudge& judge, int64_t trials, bool in_order) {
    return Tune(judge, trials, in_order, compiler_);
  }
  TuneResult Tune(SlowJudge& judge, int64_t trials, bool in_order, Compiler& compiler) {
    TuneRequest request;
    request.schedule = &schedule_;
    request.arch = "sm_80";
    request.strategy = "random";
    request.budget.trials = trials;
    request.compile_threads = kThreads;
    request.in_order = in_order;
    TuneSession session(request, compiler, {&judge}, SystemClock());
    auto result = session.Run(nullptr, {}, {}, [&](const TuneEvent& event) {
      if (event.kind == TuneEvent::Kind::kTrial) numbers_.push_back(event.trial->number);
    });
    EXPECT_TRUE(result) << result.error().ToString();
    return *std::move(result);
  }
  Numbers schedule_{4000};
  SlowCompiler compiler_;
  std::vector<int64_t> numbers_;
};

/// The fifth compilation ends when so many others were judged, or never, as far as a test can wait.
class HeldCompiler : public SlowCompiler {
 public:
  static constexpr int kOthers = 30;
  explicit HeldCompiler(const SlowJudge& judge) : judge_(judge) {}
  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& stop) override {
    if (++compilations_ == 5) {
      for (int i = 0; i < 6000 && judge_.judged < kOthers; ++i)
        std::this_thread::sleep_for(Milliseconds(10));
      judged_meanwhile = judge_.judged.load();
    }
    return SlowCompiler::Compile(request, stop);
  }
  std::atomic<int> judged_meanwhile = 0;

 private:
  const SlowJudge& judge_;
  std::atomic<int> compilations_ = 0;
};

TEST_F(PipelineTest, OneSlowCompilationHoldsUpNobody) {
  SlowJudge judge(1);
  HeldCompiler held(judge);
  const TuneResult result = Tune(judge, 80, false, held);
  EXPECT_EQ(result.trials.size(), 80u);
  EXPECT_GE(held.judged_meanwhile, HeldCompiler::kOthers);
  ASSERT_EQ(numbers_.size(), 80u);
  for (size_t i = 0; i < numbers_.size(); ++i) EXPECT_EQ(numbers_[i], static_cast<int64_t>(i) + 1);
}

TEST_F(PipelineTest, ADeviceThatWaitsMeasuresTheLeadersAgain) {
  SlowJudge judge(2);
  const TuneResult result = Tune(judge, 40, false);
  EXPECT_EQ(result.trials.size(), 40u) << "what is measured again is no trial";
  EXPECT_FALSE(judge.again.empty());
  EXPECT_GT(result.spent.remeasuring, 0);
  const auto most = std::ranges::max_element(
      result.trials, {}, [](const Trial& trial) { return trial.measurement->samples_ns.size(); });
  EXPECT_GT(most->measurement->samples_ns.size(), 8u);
}

/// Gets ready once somebody compiles.
class LateJudge : public SlowJudge {
 public:
  explicit LateJudge(const std::atomic<bool>& compiling) : SlowJudge(1), compiling_(compiling) {}
  Status Begin(const JudgeTask&) override {
    for (int i = 0; i < 500 && !compiling_; ++i) std::this_thread::sleep_for(Milliseconds(10));
    return compiling_ ? Status{} : Invalid("nobody compiles");
  }

 private:
  const std::atomic<bool>& compiling_;
};

TEST_F(PipelineTest, TheFirstAreCompiledWhileTheDeviceGetsReady) {
  LateJudge judge(compiler_.begun);
  EXPECT_EQ(Tune(judge, 3, true).trials.size(), 3u);
}

TEST_F(PipelineTest, InOrderNothingIsMeasuredAgain) {
  SlowJudge judge(1);
  const TuneResult result = Tune(judge, 20, true);
  EXPECT_EQ(result.trials.size(), 20u);
  EXPECT_EQ(result.spent.remeasuring, 0);
  EXPECT_GT(result.spent.for_compile, 0);
}

}  // namespace
}  // namespace atunner
