#include "atunner/jobs/runs/round_tuning.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/codegen/template/family.h"
#include "atunner/jobs/requests/problems.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/jobs/runs/artifact_writer.h"
#include "atunner/jobs/runs/finished_run.h"
#include "atunner/measure/harness.h"

namespace atunner::jobs {
namespace {

/// A user's kernel; what rewrites make of it is checked at the same sizes.
class RewrittenToo : public ScheduleTemplate {
 public:
  explicit RewrittenToo(std::unique_ptr<ScheduleTemplate> own) : own_(std::move(own)) {}

  const KernelSpec& spec() const override { return own_->spec(); }
  const ParameterSpace& space() const override { return own_->space(); }
  Configuration Default() const override { return own_->Default(); }
  Result<RenderedKernel> Render(const Configuration& one) const override {
    return own_->Render(one);
  }
  std::optional<RenderedKernel> Naive() const override { return own_->Naive(); }
  std::vector<Dims> CheckDims(const Configuration& one) const override {
    return own_->CheckDims(one);
  }
  ValidSizes FreeSizes(const Configuration& one) const override { return own_->FreeSizes(one); }
  std::optional<double> Cost(const Configuration& one,
                             const DeviceProfile& profile) const override {
    return own_->Cost(one, profile);
  }
  std::vector<Dims> CheckDimsOfKernel(const Candidate& candidate) const override {
    const bool rewritten = candidate.provenance.proposer.starts_with("rewrite:");
    return rewritten ? own_->CheckDims(own_->Default()) : own_->CheckDimsOfKernel(candidate);
  }

 private:
  std::unique_ptr<ScheduleTemplate> own_;
};

}  // namespace

RoundTuning::RoundTuning(const TuningOptions& options, Services& services, const EventSink& events,
                         Target target, std::stop_token stop)
    : options_(options),
      services_(services),
      events_(events),
      target_(std::move(target)),
      stop_(std::move(stop)),
      sessions_(target_, options_, services, events, stop_) {}

Result<std::unique_ptr<RoundTuning>> RoundTuning::Open(const OptimizeRequest& request,
                                                       Services& services, const EventSink& events,
                                                       std::stop_token stop) {
  ATUNNER_TRY(const std::vector<KernelSpec> specs, SpecsOf(request.task));
  if (specs.size() > 1)
    return Fail(ErrorCode::kUnsupported, "rounds are for one size at a time", "request.dims",
                "name one size");
  ATUNNER_TRY(Target target, services.devices.Choose(request.tuning.target));
  std::unique_ptr<RoundTuning> tuning(
      new RoundTuning(request.tuning, services, events, std::move(target), std::move(stop)));
  ATUNNER_TRY(tuning->whole_, MakeTemplate(specs.front(), tuning->target_.profile));
  ATUNNER_RETURN_IF_ERROR(tuning->Prepare());
  return tuning;
}

Result<std::unique_ptr<RoundTuning>> RoundTuning::Open(const SourceTask& source,
                                                       const TuningOptions& options,
                                                       Services& services, const EventSink& events,
                                                       std::stop_token stop) {
  ATUNNER_TRY(Target target, services.devices.Choose(options.target));
  ATUNNER_TRY(auto own, OpenProblem({.task = {}, .file = source.file, .kernel = source.kernel},
                                    target, events));
  std::unique_ptr<RoundTuning> tuning(
      new RoundTuning(options, services, events, std::move(target), std::move(stop)));
  tuning->whole_ = std::make_unique<RewrittenToo>(std::move(own));
  ATUNNER_RETURN_IF_ERROR(tuning->Prepare());
  return tuning;
}

Status RoundTuning::Prepare() {
  ATUNNER_TRY(RestrictedSchedule restricted, RestrictedSchedule::Make(*whole_, options_.where));
  restricted_.emplace(std::move(restricted));
  if (!options_.out.empty()) ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(options_.out));
  ATUNNER_RETURN_IF_ERROR(sessions_.Open());
  ATUNNER_TRY(run_, sessions_.OpenRun(*restricted_));
  ATUNNER_TRY(folder_, ArtifactFolder(options_.out, run_, services_));
  return {};
}

double RoundTuning::floor_ns() const { return PhysicalFloorNs(schedule().spec(), target_.profile); }

Status RoundTuning::Begin() {
  session_ = sessions_.MakeRounds(schedule(), options_.budget, run_);
  return session_->Begin();
}

Status RoundTuning::Try(std::vector<Candidate> candidates) {
  if (!session_) ATUNNER_RETURN_IF_ERROR(Begin());
  return session_->Try(std::move(candidates));
}

const std::vector<Trial>& RoundTuning::trials() const {
  static const std::vector<Trial> kNone;
  return session_ ? session_->result().trials : kNone;
}

const std::vector<Baseline>& RoundTuning::baselines() const {
  static const std::vector<Baseline> kNone;
  return session_ ? session_->result().baselines : kNone;
}

const std::string& RoundTuning::stop_reason() const {
  static const std::string kNone;
  return session_ ? session_->result().stop_reason : kNone;
}

Result<RunResult> RoundTuning::Finish(const std::string& reason) {
  if (!session_) ATUNNER_RETURN_IF_ERROR(Begin());
  ATUNNER_RETURN_IF_ERROR(session_->Finish(reason));
  Json summary;
  ATUNNER_RETURN_IF_ERROR(sessions_.CloseRun(session_->result(), schedule(), run_, summary));
  return FinishRun(folder_, run_, session_->result(), schedule(), target_.profile,
                   std::move(summary), events_);
}

}  // namespace atunner::jobs
