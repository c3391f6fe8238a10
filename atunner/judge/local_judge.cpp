#include "atunner/judge/local_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/judge/predict.h"
#include "atunner/judge/prediction_buffers.h"
#include "atunner/measure/vendor.h"

namespace atunner {
namespace {

/// Screening: enough to order candidates; the winner and its rivals are measured again at length.
StopRule ScreeningRule() {
  return {.relative_interval = 0.02,
          .minimum_samples = 6,
          .maximum_samples = 12,
          .maximum_seconds = 1.5};
}
StopRule FinalRule() {
  return {.relative_interval = 0.005,
          .minimum_samples = 12,
          .maximum_samples = 60,
          .maximum_seconds = 6};
}

/// Clocks and event resolution leave a little room under the floor.
constexpr double kFloorSlack = 0.95;

/// A time that is physically impossible is no measurement.
void RefuseBelowFloor(double floor_ns, JudgeAnswer& answer) {
  const double median_ns = answer.measurement->median_ns;
  if (median_ns >= kFloorSlack * floor_ns) return;
  answer.verdict.kind = VerdictKind::kBelowFloor;
  answer.verdict.reason = fmt::format("measured {:.3g} us, the physical floor is {:.3g} us",
                                      median_ns / 1e3, floor_ns / 1e3);
  answer.measurement.reset();
}

}  // namespace

Result<std::unique_ptr<Verifier>> LocalJudge::MakeVerifier(uint64_t seed) const {
  VerifyOptions options;
  options.seed = Secret(seed);
  options.launch_timeout_seconds = task_.launch_timeout_seconds;
  return Verifier::Make(device_, compiler_, task_.spec, options);
}

Status LocalJudge::Begin(const JudgeTask& task) {
  harness_.reset();
  verifier_.reset();
  predict_buffers_.reset();
  task_ = task;
  ATUNNER_TRY(Verifier * verifier, VerifierFor(task.seed));
  (void)verifier;
  return {};
}

Result<Verifier*> LocalJudge::VerifierFor(uint64_t seed) {
  if (verifier_ && verifier_seed_ == seed) return verifier_.get();
  harness_.reset();
  verifier_.reset();  // frees its memory before the next one asks for as much
  ATUNNER_TRY(verifier_, MakeVerifier(seed));
  verifier_seed_ = seed;
  if (timed_ != nullptr) {
    ATUNNER_TRY(harness_, Harness::Make(*timed_, *verifier_));
  }
  return verifier_.get();
}

Result<JudgeAnswer> LocalJudge::Examine(const CandidateKernel& candidate, const JudgeOrder& order) {
  JudgeAnswer answer;
  const double start = SystemClock().Now();
  ATUNNER_TRY(Verifier * verifier, VerifierFor(order.seed));
  ATUNNER_TRY(auto verified,
              verifier->Verify(std::make_shared<const CandidateKernel>(candidate),
                               order.plain      ? VerifyLevel::kBaseline
                               : order.thorough ? VerifyLevel::kFinal
                                                : VerifyLevel::kComplete,
                               // a kernel that is timed is verified completely
                               order.time ? std::nullopt : order.time_limit_seconds));
  const double proven = SystemClock().Now();
  answer.verify_seconds = proven - start;
  if (const Verdict* refused = std::get_if<Verdict>(&verified)) {
    answer.verdict = *refused;
    if (order.time) ATUNNER_RETURN_IF_ERROR(PredictUnchecked(candidate, answer));
    return answer;
  }
  const VerifiedKernel& kernel = std::get<VerifiedKernel>(verified);
  answer.verdict = kernel.verdict();
  if (!order.time) return answer;
  if (timed_ != nullptr) {
    ATUNNER_RETURN_IF_ERROR(Measure(*verifier, kernel, order, answer));
  } else if (predicting_ != nullptr) {
    ATUNNER_RETURN_IF_ERROR(Predict(kernel.kernel(), kernel.module(), answer));
  }
  answer.timing_seconds = SystemClock().Now() - proven;
  return answer;
}

Status LocalJudge::PredictUnchecked(const CandidateKernel& candidate, JudgeAnswer& answer) {
  if (answer.verdict.kind != VerdictKind::kUnchecked || predicting_ == nullptr) return {};
  ATUNNER_TRY(const auto module, device_.Load(candidate.module));
  return Predict(candidate, *module, answer);
}

Status LocalJudge::Measure(Verifier& verifier, const VerifiedKernel& kernel,
                           const JudgeOrder& order, JudgeAnswer& answer) {
  ATUNNER_TRY(const auto timed_kernel, MakeTimedKernel(*timed_, verifier, kernel));
  HarnessOptions options;
  options.stop = order.thorough ? FinalRule() : ScreeningRule();
  options.seed = Secret(order.seed ^ 0x71);
  options.incumbent_ns = order.incumbent_ns;
  options.check_stale = !order.plain;  // ours, and slow
  ATUNNER_TRY(TimingResult timing, harness_->Time(*timed_kernel, options));
  answer.verdict.checks.insert(answer.verdict.checks.end(), timing.verdict.checks.begin(),
                               timing.verdict.checks.end());
  if (!timing.verdict.correct()) {
    answer.verdict.kind = timing.verdict.kind;
    answer.verdict.reason = timing.verdict.reason;
    return {};
  }
  answer.measurement = std::move(timing.measurement);
  if (timing.raced_out) answer.note = "raced out: clearly slower than the incumbent";
  RefuseBelowFloor(PhysicalFloorNs(task_.spec, timed_->profile()), answer);
  if (order.energy && answer.measurement) {
    const double time_ns = answer.measurement->median_ns;
    ATUNNER_TRY(answer.measurement->energy_joules,
                harness_->EnergyOfRun(*timed_kernel, time_ns, options.seed));
  }
  return {};
}

Status LocalJudge::Predict(const CandidateKernel& candidate, LoadedModule& module,
                           JudgeAnswer& answer) {
  if (!predict_buffers_) {
    ATUNNER_TRY(PredictionBuffers made, PredictionBuffers::Make(*predicting_, task_.spec));
    predict_buffers_ = std::make_unique<PredictionBuffers>(std::move(made));
  }
  auto estimate = PredictPlan(*predicting_, task_.spec, candidate, module, *predict_buffers_);
  if (estimate) {
    answer.estimate = *std::move(estimate);
    return {};
  }
  const bool lacks = estimate.error().code == ErrorCode::kUnsupported;
  answer.verdict.kind = lacks ? VerdictKind::kUnsupported : VerdictKind::kCrash;
  answer.verdict.reason = "at the full problem size: " + estimate.error().ToString();
  return {};
}

Result<std::unique_ptr<TimedKernel>> LocalJudge::Prove(Verifier& verifier,
                                                       const CandidateKernel& candidate,
                                                       VerifyLevel level) {
  ATUNNER_TRY(auto verified,
              verifier.Verify(std::make_shared<const CandidateKernel>(candidate), level));
  if (const Verdict* refused = std::get_if<Verdict>(&verified)) {
    return Invalid("is not correct and is not compared: " + refused->reason);
  }
  return MakeTimedKernel(*timed_, verifier, std::get<VerifiedKernel>(verified));
}

Result<Comparison> LocalJudge::Compare(const CandidateKernel& baseline,
                                       const CandidateKernel& candidate, int pairs, uint64_t seed) {
  if (timed_ == nullptr)
    return Fail(ErrorCode::kUnsupported,
                "a device that predicts times nothing, so nothing can be paired");
  ATUNNER_TRY(Verifier * verifier, VerifierFor(seed));
  ATUNNER_TRY(const auto first, Prove(*verifier, baseline, VerifyLevel::kBaseline));
  ATUNNER_TRY(const auto second, Prove(*verifier, candidate, VerifyLevel::kComplete));
  return harness_->Compare(*first, *second, pairs, Secret(seed));
}

Result<std::vector<LaunchMetrics>> Judge::Count(const CandidateKernel&,
                                                std::span<const std::string>, uint64_t) {
  return Fail(ErrorCode::kUnsupported, "a device that predicts has no counters");
}

Result<std::vector<LaunchMetrics>> LocalJudge::Count(const CandidateKernel& candidate,
                                                     std::span<const std::string> metrics,
                                                     uint64_t seed) {
  if (timed_ == nullptr) return Judge::Count(candidate, metrics, seed);
  ATUNNER_TRY(Verifier * verifier, VerifierFor(seed));
  ATUNNER_TRY(const auto kernel, Prove(*verifier, candidate, VerifyLevel::kBaseline));
  ATUNNER_TRY(const MetricValues values, harness_->Count(*kernel, metrics, Secret(seed)));
  std::vector<LaunchMetrics> launches;
  for (const std::vector<double>& row : values.of_launch) {
    LaunchMetrics& launch = launches.emplace_back();
    for (size_t i = 0; i < row.size(); ++i)
      if (std::isfinite(row[i])) launch[values.metrics[i]] = row[i];
  }
  return launches;
}

Result<Baseline> LocalJudge::CompareVendor(const std::string& name,
                                           const CandidateKernel& candidate, int pairs,
                                           uint64_t seed) {
  Baseline baseline;
  baseline.name = name;
  if (timed_ == nullptr) {
    baseline.note = "runs on a real GPU only";
    return baseline;
  }
  ATUNNER_TRY(Verifier * verifier, VerifierFor(seed));
  auto vendor = MakeVendorKernel(name, *timed_, task_.spec);
  if (!vendor) {
    baseline.note = vendor.error().ToString();
    return baseline;
  }
  HarnessOptions options;
  options.stop = FinalRule();
  options.seed = Secret(seed);
  options.check_stale = false;  // a library is trusted not to replay
  ATUNNER_TRY(TimingResult timing, harness_->Time(**vendor, options));
  baseline.verdict = timing.verdict;
  baseline.measurement = timing.measurement;
  if (!timing.verdict.correct()) return baseline;
  ATUNNER_TRY(const auto timed_kernel, Prove(*verifier, candidate, VerifyLevel::kComplete));
  ATUNNER_TRY(baseline.comparison, harness_->Compare(**vendor, *timed_kernel, pairs, Secret(seed)));
  return baseline;
}

}  // namespace atunner
