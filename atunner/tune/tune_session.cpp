#include "atunner/tune/tune_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/measure/harness.h"
#include "atunner/search/surrogate/prior.h"
#include "atunner/tune/baseline_phase.h"
#include "atunner/tune/final_phase.h"
#include "atunner/tune/guess_phase.h"
#include "atunner/tune/proposals.h"
#include "atunner/tune/search_phase.h"
#include "atunner/tune/session_context.h"
#include "atunner/tune/transfer.h"

namespace atunner {
namespace {

constexpr double kLaunchTimeoutSeconds = 20;

}  // namespace

bool TuneRequest::WantsEnergy() const {
  return std::ranges::find(objectives, Objective::kEnergy) != objectives.end();
}

uint64_t TuneRequest::FinalSeed() const { return Mix64(seed ^ 0xf17a1); }

/// Returns a sentence that names the runs; "" when there is nothing to learn from.
Result<std::string> TuneSession::LearnFromPriorRuns(Store& store, const RunRecord& run,
                                                    std::shared_ptr<const SpaceIndex> index,
                                                    SearchOptions& options) const {
  ATUNNER_TRY(std::vector<PriorRun> prior_runs,
              PriorRunsFor(store, run, request_.schedule->spec(), request_.schedule->space()));
  std::vector<PastRun> runs;
  std::string names;
  for (PriorRun& prior : prior_runs) {
    names += (names.empty() ? "" : ", ") + prior.run;
    runs.push_back(std::move(prior.past));
  }
  options.prior = Prior::Make(std::move(index), runs, request_.seed);
  return options.prior ? "learning from " + names + " (request.no_transfer: from nothing)" : "";
}

Result<TuneSession::Search> TuneSession::MakeSearch(Store* store, const RunRecord& run) const {
  const ScheduleTemplate& schedule = *request_.schedule;
  ATUNNER_TRY(SpaceIndex built, SpaceIndex::Build(schedule.space(), schedule.spec().dims));
  const auto index = std::make_shared<const SpaceIndex>(std::move(built));
  SearchOptions options{.seed = request_.seed, .first = schedule.Default()};
  options.objectives = request_.objectives.size();
  options.cost = [this](const Configuration& one) {
    return request_.schedule->Cost(one, request_.profile);
  };
  Search search;
  search.space_size = index->size();
  if (store != nullptr && request_.transfer) {
    ATUNNER_TRY(search.prior_runs, LearnFromPriorRuns(*store, run, index, options));
  }
  ATUNNER_TRY(auto searcher, MakeSearcher(request_.strategy, index, options));
  search.source = std::make_unique<SearcherSource>(std::move(searcher), schedule.space(),
                                                   schedule.Default());
  return search;
}

Result<TuneResult> TuneSession::Run(Store* store, const RunRecord& run, const std::stop_token& stop,
                                    const Listener& listener) {
  TuneResult result;
  TrialLog log(store, run, clock_, listener, result);
  const CandidateCompiler compiler(*request_.schedule, compiler_, request_.arch);
  const SessionContext context{request_, compiler, judge_, clock_, stop, log, result};
  ATUNNER_TRY(const Search search, MakeSearch(store, run));
  result.space_size = search.space_size;
  result.floor_ns = PhysicalFloorNs(context.spec(), request_.profile);

  Proposals proposals(*search.source, request_.sources, request_.objectives);
  ATUNNER_RETURN_IF_ERROR(log.LoadEarlier());
  for (const Trial& trial : result.trials) proposals.Observe(trial);
  log.Emit({.kind = TuneEvent::Kind::kStarted,
            .text = result.trials.empty()
                        ? search.prior_runs
                        : fmt::format("resuming: {} trials are known", result.trials.size())});
  ATUNNER_RETURN_IF_ERROR(RunPhases(context, proposals));
  result.seconds = log.SessionSeconds();
  log.Emit({.kind = TuneEvent::Kind::kFinished, .text = result.stop_reason});
  return result;
}

Status TuneSession::RunPhases(const SessionContext& context, Proposals& proposals) {
  if (request_.thoroughness != Thoroughness::kSearch) {
    state_ = State::kSearch;
    ATUNNER_RETURN_IF_ERROR(GuessPhase(context, proposals).Run());
    state_ = State::kFinished;
    return {};
  }
  SearchPhase search_phase(context, judges_, proposals);
  search_phase.Refill();  // the first candidates compile while the judges begin

  state_ = State::kBaseline;
  ATUNNER_RETURN_IF_ERROR(judges_.Begin({context.spec(), request_.seed, kLaunchTimeoutSeconds}));
  BaselinePhase baselines(context);
  ATUNNER_RETURN_IF_ERROR(baselines.Measure());
  virtual_check_.Begin(context.spec(), request_.FinalSeed(), baselines.plain());

  state_ = State::kSearch;
  ATUNNER_RETURN_IF_ERROR(search_phase.Run());
  TuneResult& result = context.result;
  if (request_.objectives.size() > 1) result.front = FrontOf(result.trials, request_.objectives);

  state_ = State::kFinals;
  ATUNNER_RETURN_IF_ERROR(FinalPhase(context, virtual_check_).Run());

  state_ = State::kCompare;
  ATUNNER_RETURN_IF_ERROR(baselines.Compare());

  state_ = State::kFinished;
  return {};
}

}  // namespace atunner
