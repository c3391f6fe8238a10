#include "atunner/tune/round_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "atunner/measure/harness.h"
#include "atunner/search/candidate_source.h"
#include "atunner/search/space/space_index.h"
#include "atunner/tune/final_phase.h"
#include "atunner/tune/proposals.h"
#include "atunner/tune/search_phase.h"

namespace atunner {
namespace {

constexpr double kLaunchTimeoutSeconds = 20;

}  // namespace

RoundSession::RoundSession(TuneRequest request, Compiler& compiler,
                           const std::vector<Judge*>& judges, Clock& clock, Judge* virtual_judge,
                           Store* store, const RunRecord& run, std::stop_token stop,
                           TrialLog::Listener listener)
    : request_(std::move(request)),
      stop_(std::move(stop)),
      listener_(std::move(listener)),
      log_(store, run, clock, listener_, result_),
      compiler_(*request_.schedule, compiler, request_.arch),
      context_{request_, compiler_, *judges.front(), clock, stop_, log_, result_},
      judges_(judges, clock, request_.in_order),
      virtual_check_(virtual_judge, clock),
      baselines_(context_) {}

Status RoundSession::Begin() {
  const ScheduleTemplate& schedule = *request_.schedule;
  seconds_ = request_.budget.seconds;
  ATUNNER_TRY(const SpaceIndex index, SpaceIndex::Build(schedule.space(), schedule.spec().dims));
  result_.space_size = index.size();
  result_.floor_ns = PhysicalFloorNs(schedule.spec(), request_.profile);
  ATUNNER_RETURN_IF_ERROR(log_.LoadEarlier());
  const std::string text = result_.trials.empty() ? ""
                                                  : fmt::format("resuming: {} trials are known",
                                                                result_.trials.size());
  log_.Emit({.kind = TuneEvent::Kind::kStarted, .text = text});
  ATUNNER_RETURN_IF_ERROR(judges_.Begin({schedule.spec(), request_.seed, kLaunchTimeoutSeconds}));
  ATUNNER_RETURN_IF_ERROR(baselines_.Measure());
  virtual_check_.Begin(schedule.spec(), request_.FinalSeed(), baselines_.plain());
  return {};
}

Status RoundSession::Try(std::vector<Candidate> candidates) {
  // A time budget is for all rounds together, and a search counts from its own beginning.
  if (seconds_) request_.budget.seconds = std::max(0.0, *seconds_ - result_.spent.search);
  // A source that offers only known candidates counts as exhausted, so they are taken out here.
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return std::ranges::any_of(
        result_.trials, [&](const Trial& trial) { return trial.candidate.id == candidate.id; });
  });
  ListedCandidates list(std::move(candidates));
  Proposals proposals(list, {}, request_.objectives);
  for (const Trial& trial : result_.trials) proposals.Observe(trial);
  return SearchPhase(context_, judges_, proposals).Run();
}

Status RoundSession::Finish(std::string reason) {
  result_.stop_reason = std::move(reason);
  if (request_.objectives.size() > 1) result_.front = FrontOf(result_.trials, request_.objectives);
  ATUNNER_RETURN_IF_ERROR(FinalPhase(context_, virtual_check_).Run());
  ATUNNER_RETURN_IF_ERROR(baselines_.Compare());
  result_.seconds = log_.SessionSeconds();
  log_.Emit({.kind = TuneEvent::Kind::kFinished, .text = result_.stop_reason});
  return {};
}

}  // namespace atunner
