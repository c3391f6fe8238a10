#include "atunner/jobs/runs/round_tuning.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/codegen/template/family.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/jobs/runs/artifact_writer.h"
#include "atunner/jobs/runs/finished_run.h"
#include "atunner/measure/harness.h"

namespace atunner::jobs {

RoundTuning::RoundTuning(const OptimizeRequest& request, Services& services,
                         const EventSink& events, Target target, std::stop_token stop)
    : options_(request.tuning),
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
      new RoundTuning(request, services, events, std::move(target), std::move(stop)));
  ATUNNER_TRY(tuning->whole_, MakeTemplate(specs.front(), tuning->target_.profile));
  ATUNNER_TRY(RestrictedSchedule restricted,
              RestrictedSchedule::Make(*tuning->whole_, request.tuning.where));
  tuning->restricted_.emplace(std::move(restricted));
  if (!request.tuning.out.empty()) ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(request.tuning.out));
  ATUNNER_RETURN_IF_ERROR(tuning->sessions_.Open());
  ATUNNER_TRY(tuning->run_, tuning->sessions_.OpenRun(*tuning->restricted_));
  ATUNNER_TRY(tuning->folder_, ArtifactFolder(request.tuning.out, tuning->run_, services));
  return tuning;
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
