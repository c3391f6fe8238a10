// Shared by the tests of tuning sessions: a schedule of one parameter, and a judge that knows the
// answers.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "atunner/tune/tune_session.h"

namespace atunner {

inline constexpr uint64_t kSeed = 7;

/// One parameter "id" with `count` values; the kernel's text is its id. n floats in, n floats out.
class Schedule : public ScheduleTemplate {
 public:
  explicit Schedule(int64_t count, bool naive = false) : naive_(naive) {
    Parameter id{"id", {}, ""};
    for (int64_t i = 0; i < count; ++i) id.values.emplace_back(i);
    space_.parameters = {id};
    spec_.name = "task";
    spec_.dims = {{"n", int64_t{1} << 20}};
    spec_.args = {{.name = "x",
                   .role = Role::kInput,
                   .shape = {Expr::MustParse("n")},
                   .value = {},
                   .fill = {}},
                  {.name = "y",
                   .role = Role::kOutput,
                   .shape = {Expr::MustParse("n")},
                   .value = {},
                   .fill = {}}};
  }
  void IsOfAUser() { spec_.oracle.kind = Oracle::Kind::kKernel; }
  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Configuration Default() const override { return {{int64_t{0}}}; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const std::string id = ToString(configuration.values[0]);
    if (unrenderable.contains(id)) return Invalid("cannot be written");
    RenderedKernel kernel = Text(id);
    if (const auto bytes = shared.find(id); bytes != shared.end())
      kernel.plan.steps[0].shared_bytes = bytes->second;
    return kernel;
  }
  std::optional<RenderedKernel> Naive() const override {
    return naive_ ? std::optional(Text("naive")) : std::nullopt;
  }
  std::vector<Dims> CheckDims(const Configuration&) const override { return {{{"n", 64}}}; }

  std::set<std::string> unrenderable;
  std::map<std::string, int64_t> shared;  ///< dynamic shared memory by id

 private:
  static RenderedKernel Text(const std::string& text) {
    RenderedKernel kernel;
    kernel.source.text = text;
    LaunchStep step;
    step.entry = "k";
    kernel.plan.steps = {step};
    return kernel;
  }
  KernelSpec spec_;
  ParameterSpace space_;
  bool naive_;
};

class TextCompiler : public Compiler {
 public:
  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& = {}) override {
    if (slow == request.source.text) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CompileOutcome outcome;
    if (broken.contains(request.source.text)) {
      outcome.error = "mine.cu(3): error";
      return outcome;
    }
    outcome.module.emplace();
    outcome.module->ptx = request.source.text;
    const auto twin = twins.find(request.source.text);
    outcome.module->binary = DigestOf(
        std::string_view(twin == twins.end() ? request.source.text : twin->second));
    return outcome;
  }
  std::string Version() const override { return "text"; }
  std::set<std::string> broken;
  std::string slow;
  std::map<std::string, std::string> twins;  ///< text → text that compiles to the same binary
};

/// Answers by the candidate's text. Time passes on the clock while it works.
class KnowingJudge : public Judge {
 public:
  struct Candidate {
    VerdictKind verdict = VerdictKind::kCorrect;
    double ns = 1e9;  ///< what is measured
    /// Deceives the screening and is caught with inputs nobody saw before.
    std::optional<VerdictKind> with_new_inputs;
    double final_ns = 0;  ///< measured at length, if other than `ns`
  };

  explicit KnowingJudge(ManualClock& clock) : clock_(clock) {}

  Status Begin(const JudgeTask& task) override {
    begun.push_back(task.seed);
    return {};
  }
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override {
    clock_.Advance(seconds);
    examined.push_back(candidate.module.ptx);
    incumbents.push_back(order.incumbent_ns);
    const bool is_whole = whole_kernels.contains(candidate.module.ptx);
    EXPECT_EQ(candidate.check_dims.size(), is_whole ? 0u : 1u);
    const Candidate& known = candidates.contains(candidate.module.ptx)
                                 ? candidates[candidate.module.ptx]
                                 : other;
    JudgeAnswer answer;
    const bool final_round = order.seed != kSeed;
    EXPECT_EQ(order.thorough, final_round);
    answer.verdict.kind = final_round && known.with_new_inputs ? *known.with_new_inputs
                                                               : known.verdict;
    if (!answer.verdict.correct()) {
      answer.verdict.reason = "was caught";
      return answer;
    }
    answer.measurement.emplace();
    answer.measurement->median_ns = final_round && known.final_ns > 0 ? known.final_ns : known.ns;
    return answer;
  }
  Result<Comparison> Compare(const CandidateKernel& baseline, const CandidateKernel& candidate,
                             int pairs, uint64_t) override {
    if (comparing_fails) return Fail(ErrorCode::kUnavailable, "the runner died of signal 9");
    compared.emplace_back(baseline.module.ptx, candidate.module.ptx);
    return Comparison{3, 2.9, 3.1, pairs};
  }
  Result<Baseline> CompareVendor(const std::string& name, const CandidateKernel& candidate,
                                 int pairs, uint64_t) override {
    if (comparing_fails) return Fail(ErrorCode::kUnavailable, "the runner died of signal 9");
    compared.emplace_back(name, candidate.module.ptx);
    Baseline baseline;
    baseline.name = name;
    baseline.comparison = Comparison{0.9, 0.8, 1, pairs};
    return baseline;
  }

  std::map<std::string, Candidate> candidates;
  Candidate other;                      ///< for candidates that are not listed
  std::set<std::string> whole_kernels;  ///< texts that no template rendered
  double seconds = 0;
  bool comparing_fails = false;
  std::vector<std::string> examined;
  std::vector<std::optional<double>> incumbents;
  std::vector<uint64_t> begun;
  std::vector<std::pair<std::string, std::string>> compared;

 private:
  ManualClock& clock_;
};

class TuneSessionTest : public testing::Test {
 protected:
  TuneSessionTest() {
    request_.profile.dram_gbps = 1000;
    request_.profile.l2_bytes = 1 << 20;
    request_.arch = "sm_80";
    request_.strategy = "random";
    request_.seed = kSeed;
  }
  Result<TuneResult> TryTune(const Schedule& schedule, Store* store = nullptr,
                             const RunRecord& run = {}) {
    request_.schedule = &schedule;
    TuneSession session(request_, compiler_, judges_, clock_, virtual_judge_);
    return session.Run(store, run, stop_.get_token(), [&](const TuneEvent& event) {
      events_.push_back(event.kind);
      if (event.kind == TuneEvent::Kind::kFinalists) said_ += event.text + "\n";
      if (stop_after_ && event.kind == TuneEvent::Kind::kTrial && event.trials_done == *stop_after_)
        stop_.request_stop();
    });
  }
  TuneResult Tune(const Schedule& schedule, Store* store = nullptr, const RunRecord& run = {}) {
    auto result = TryTune(schedule, store, run);
    EXPECT_TRUE(result) << result.error().ToString();
    return *std::move(result);
  }
  static std::string Winner(const TuneResult& result) {
    return result.winner ? result.winner->module.ptx : "nobody";
  }

  ManualClock clock_;
  TextCompiler compiler_;
  KnowingJudge judge_{clock_};
  std::vector<Judge*> judges_ = {&judge_};
  Judge* virtual_judge_ = nullptr;
  TuneRequest request_;
  std::stop_source stop_;
  std::optional<int64_t> stop_after_;
  std::vector<TuneEvent::Kind> events_;
  std::string said_;  ///< of the finalists
};

}  // namespace atunner
