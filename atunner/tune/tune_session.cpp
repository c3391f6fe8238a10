#include "atunner/tune/tune_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/base/random.h"
#include "atunner/measure/harness.h"
#include "atunner/search/finalists.h"
#include "atunner/tune/transfer.h"

namespace atunner {
namespace {

constexpr double kCloseToFloor = 1.04;  // nothing worth looking for is left
constexpr int kPairs = 11;
constexpr double kFirstAhead = 4;  // candidates compiling before anything is known of compiling and judging
constexpr double kSlack = 1.5;     // compile times scatter
constexpr uint64_t kMaxVerifiedAgain = 5;

/// Standard error of a trial's time over the time, from the 95 % interval of its median; an estimate is exact.
double RelativeError(const Trial& trial) {
  if (!trial.measurement || !(trial.measurement->median_ns > 0)) return 0;
  return (trial.measurement->high_ns - trial.measurement->low_ns) / (2 * 1.96 * trial.measurement->median_ns);
}

/// Of trials in the order of the objective.
size_t FinalistsOf(const std::vector<const Trial*>& ranking, Objective objective) {
  std::vector<Contender> contenders;
  for (const Trial* trial : ranking) {
    const double error = objective == Objective::kTime ? RelativeError(*trial) : 0;
    contenders.push_back({*ValueOf(*trial, objective), error});
  }
  return FinalistCount(contenders);
}

}  // namespace

Compiled TuneSession::CompileOne(const Configuration& configuration, const std::stop_token& stop) const {
  Compiled compiled{configuration, request_.schedule->Render(configuration), CompileOutcome{}};
  if (compiled.rendered)
    compiled.outcome =
        compiler_.Compile({compiled.rendered->source, EntriesOf(compiled.rendered->plan), request_.arch}, stop);
  return compiled;
}

Observation TuneSession::ObservationOf(const Trial& trial) const {
  std::vector<double> values = ValuesOf(trial, request_.objectives);
  if (values.empty()) return {trial.configuration, std::nullopt};
  const double error = request_.objectives.front() == Objective::kTime ? RelativeError(trial) : 0;
  return {trial.configuration, values.front(), error, {values.begin() + 1, values.end()}};
}

/// The trial when nothing is left to judge; nullopt: a judge has it.
Result<std::optional<Trial>> TuneSession::StartOne(Compiled compiled) {
  Trial trial;
  trial.configuration = compiled.configuration;
  if (!compiled.rendered) {
    trial.verdict = {VerdictKind::kCompileError, compiled.rendered.error().ToString(), {}, false};
    return trial;
  }
  ATUNNER_TRY(CompileOutcome outcome, std::move(compiled.outcome));
  if (!outcome.ok()) {
    trial.verdict = {outcome.timed_out ? VerdictKind::kTimeout : VerdictKind::kCompileError, outcome.error, {}, false};
    return trial;
  }
  trial.resources = outcome.module->kernels;
  trial.binary = outcome.module->binary;
  trial.compile_seconds = outcome.module->compile_seconds;
  result_.compile_seconds += trial.compile_seconds;
  CandidateKernel candidate{*std::move(outcome.module), compiled.rendered->plan,
                            request_.schedule->CheckDims(compiled.configuration)};
  trial.memory_bytes = MemoryOf(candidate, request_.schedule->spec());
  return StartJudging(std::move(candidate), std::move(trial));
}

JudgeOrder TuneSession::ScreeningOrder() const {
  JudgeOrder order;
  order.seed = request_.seed;
  // A slow one may be good for something else.
  if (MinimisesTimeAlone()) order.incumbent_ns = BestNs();
  return order;
}

std::optional<Trial> TuneSession::StartJudging(CandidateKernel candidate, Trial trial) {
  const int64_t ticket = ++tickets_;
  const auto twin = numbers_.find(judged_before_.FirstOf(candidate, request_.schedule->spec(), ticket));
  if (twin != numbers_.end()) {  // one that is still being judged is not waited for
    const Trial& first = result_.trials[static_cast<size_t>(twin->second - 1)];
    trial.same_as = twin->second;
    trial.verdict = first.verdict;
    trial.measurement = first.measurement;
    trial.estimate = first.estimate;
    trial.note = fmt::format("same binary and launch as trial {}", twin->second);
    return trial;
  }
  trial.number = ticket;
  lanes_.Start(std::move(trial), std::move(candidate), ScreeningOrder());
  return std::nullopt;
}

Result<Trial> TuneSession::FinishOne() {
  Judged judged = lanes_.Take();
  ATUNNER_TRY(JudgeAnswer answer, std::move(judged.answer));
  Trial trial = std::move(judged.trial);
  trial.judge_seconds = judged.seconds;
  result_.judge_seconds += judged.seconds;
  trial.verdict = std::move(answer.verdict);
  trial.measurement = std::move(answer.measurement);
  trial.estimate = std::move(answer.estimate);
  trial.note = std::move(answer.note);
  numbers_[trial.number] = static_cast<int64_t>(result_.trials.size()) + 1;
  return trial;
}

std::optional<double> TuneSession::BestNs() const {
  std::optional<double> best;
  for (const Trial& trial : result_.trials) {
    const auto ns = trial.ObjectiveNs();
    if (ns && (!best || *ns < *best)) best = ns;
  }
  return best;
}

void TuneSession::Emit(const Listener& listener, TuneEvent::Kind kind, const Trial* trial, std::string text) const {
  TuneEvent event;
  event.kind = kind;
  event.trial = trial;
  event.best_ns = BestNs();
  event.trials_done = static_cast<int64_t>(result_.trials.size());
  event.seconds = spent_before_ + clock_.Now() - started_;
  event.space_size = result_.space_size;
  event.text = std::move(text);
  listener(event);
}

std::string TuneSession::StopReason(const std::atomic<bool>& stop) const {
  if (stop) return "stopped by the user";
  const Budget& budget = request_.budget;
  if (budget.trials && static_cast<int64_t>(result_.trials.size()) >= *budget.trials) return "trial budget spent";
  // The baseline's time is not the search's: a plain kernel of half a second would leave nothing of a short budget.
  if (budget.seconds && spent_before_ + clock_.Now() - search_started_ >= *budget.seconds) return "time budget spent";
  const auto best = MinimisesTimeAlone() ? BestNs() : std::nullopt;
  if (best && *best <= kCloseToFloor * result_.floor_ns) return "within 4 % of the physical floor";
  return "";
}

/// How many candidates are asked for ahead of the judges: as many as compiling takes to keep up with them, and no more,
/// since each is asked for without knowing of those before it; at the beginning fewer, when every result counts.
size_t TuneSession::Depth() const {
  const auto threads = static_cast<double>(std::max(1, request_.compile_threads));
  const auto lanes = static_cast<double>(lanes_.count());
  double wanted = kFirstAhead;
  if (result_.judge_seconds > 0) wanted = 1 + kSlack * lanes * result_.compile_seconds / result_.judge_seconds;
  const double first = std::max(kFirstAhead, threads / 2);
  wanted = std::min(wanted, std::max(first, 0.5 * static_cast<double>(result_.trials.size())));
  return static_cast<size_t>(std::max(lanes, std::min(threads, std::max(lanes + 1, std::ceil(wanted)))));
}

/// Asks for as many as the depth and the budget leave.
void TuneSession::Refill(Searcher& searcher, CompileAhead& ahead) const {
  size_t room = Depth();
  if (request_.budget.trials) {
    const auto spent = static_cast<int64_t>(result_.trials.size() + lanes_.busy());
    room = std::min(room, static_cast<size_t>(std::max<int64_t>(0, *request_.budget.trials - spent)));
  }
  if (ahead.size() >= room) return;
  for (Configuration& configuration : searcher.Ask(room - ahead.size())) ahead.Submit(std::move(configuration));
}

Status TuneSession::Record(Trial trial, Searcher& searcher, Store* store, const RunRecord& run,
                           const Listener& listener) {
  trial.number = static_cast<int64_t>(result_.trials.size()) + 1;
  trial.proposer = trial.number == 1 ? "default" : std::string(searcher.name());
  searcher.Tell(ObservationOf(trial));
  if (store) ATUNNER_RETURN_IF_ERROR(store->AppendTrial(run.id, request_.schedule->space(), trial));
  result_.trials.push_back(std::move(trial));
  Emit(listener, TuneEvent::Kind::kTrial, &result_.trials.back(), "");
  return {};
}

Status TuneSession::Loop(Searcher& searcher, Store* store, const RunRecord& run, const std::atomic<bool>& stop,
                         const Listener& listener) {
  // Compiling runs ahead of judging: the device does not wait for the compiler.
  CompileAhead ahead([this](const Configuration& one, const std::stop_token& end) { return CompileOne(one, end); });
  const auto finish = [&]() -> Status {
    ATUNNER_TRY(Trial trial, FinishOne());
    return Record(std::move(trial), searcher, store, run, listener);
  };
  while (true) {
    result_.stop_reason = StopReason(stop);
    if (!result_.stop_reason.empty()) break;
    Refill(searcher, ahead);
    if (ahead.size() == 0 && lanes_.busy() == 0) {
      result_.stop_reason = "every configuration was tried";
      break;
    }
    if (!lanes_.HasFree() || ahead.size() == 0 || lanes_.IsReady()) {
      ATUNNER_RETURN_IF_ERROR(finish());
      continue;
    }
    std::optional<Compiled> compiled = ahead.Take([&] { return lanes_.IsReady() || !StopReason(stop).empty(); });
    if (!compiled) continue;
    ATUNNER_TRY(std::optional<Trial> done, StartOne(*std::move(compiled)));
    if (done) ATUNNER_RETURN_IF_ERROR(Record(*std::move(done), searcher, store, run, listener));
  }
  while (lanes_.busy() > 0) ATUNNER_RETURN_IF_ERROR(finish());
  return {};
}

Status TuneSession::MeasureNaive(const Listener& listener) {
  const auto naive = request_.schedule->Naive();
  if (!naive) return {};
  Baseline baseline;
  // A user's kernel is its own baseline.
  baseline.name = request_.schedule->spec().oracle.kind == Oracle::Kind::kKernel ? "as given" : "naive";
  ATUNNER_TRY(CompileOutcome outcome, compiler_.Compile({naive->source, EntriesOf(naive->plan), request_.arch}));
  if (!outcome.ok()) return Fail(ErrorCode::kInternal, "the plain kernel does not compile: " + outcome.error);
  // The plain kernel serves any size: it is checked at the smallest the schedule names.
  naive_ = CandidateKernel{*std::move(outcome.module), naive->plan,
                           request_.schedule->CheckDims(request_.schedule->Default())};
  ATUNNER_TRY(JudgeAnswer answer,
              judge_.Examine(*naive_, {.time = true, .thorough = false, .incumbent_ns = {}, .seed = request_.seed}));
  baseline.verdict = std::move(answer.verdict);
  baseline.measurement = std::move(answer.measurement);
  baseline.estimate = std::move(answer.estimate);
  if (!baseline.verdict.correct()) baseline.note = baseline.verdict.reason;
  result_.baselines.push_back(std::move(baseline));
  TuneEvent event;
  event.kind = TuneEvent::Kind::kBaseline;
  event.baseline = &result_.baselines.back();
  listener(event);
  return {};
}

Status TuneSession::ChooseWinner(const Listener& listener) {
  const Objective objective = request_.objectives.front();
  std::vector<const Trial*> ranking;
  for (const Trial& trial : result_.trials) {
    if (ValueOf(trial, objective) && trial.same_as == 0) ranking.push_back(&trial);
  }
  std::ranges::stable_sort(ranking, {}, [&](const Trial* trial) { return *ValueOf(*trial, objective); });
  if (ranking.empty()) return {};
  const size_t finalists = FinalistsOf(ranking, objective);
  Emit(listener, TuneEvent::Kind::kFinalists, nullptr,
       fmt::format("verifying the best {} again with new inputs", finalists));
  // A fresh process and seeds nobody saw: what survives here is reported.
  const uint64_t seed = Mix64(request_.seed ^ 0xf17a1);
  ATUNNER_RETURN_IF_ERROR(judge_.Begin({request_.schedule->spec(), seed, 60}));
  const JudgeOrder order{.time = true, .thorough = true, .incumbent_ns = {}, .seed = seed};
  size_t survived = 0;
  // Whoever fails now deceived the screening; the search for one that did not goes on until it is found.
  const auto enough = [&](size_t tried) {
    return survived == finalists || (survived > 0 && tried >= finalists + kMaxVerifiedAgain);
  };
  for (size_t i = 0; i < ranking.size() && !enough(i); ++i) {
    Compiled compiled = CompileOne(ranking[i]->configuration);
    if (!compiled.rendered || !compiled.outcome || !compiled.outcome->ok()) continue;
    const CandidateKernel candidate{*compiled.outcome->module, compiled.rendered->plan,
                                    request_.schedule->CheckDims(compiled.configuration)};
    const double start = clock_.Now();
    ATUNNER_TRY(JudgeAnswer answer, judge_.Examine(candidate, order));
    result_.judge_seconds += clock_.Now() - start;
    Trial again = *ranking[i];
    again.verdict = std::move(answer.verdict);
    again.measurement = std::move(answer.measurement);
    again.estimate = std::move(answer.estimate);
    const auto value = ValueOf(again, objective);
    if (!value) continue;
    ++survived;
    if (result_.best && *value >= *ValueOf(*result_.best, objective)) continue;
    result_.best = std::move(again);
    result_.winner = candidate;
    result_.winner_source = *compiled.rendered;
  }
  return {};
}

Status TuneSession::CompareBaselines(const Listener& listener) {
  if (!result_.winner || !result_.best->measurement) return {};
  const uint64_t seed = Mix64(request_.seed ^ 0xf17a1);
  for (Baseline& baseline : result_.baselines) {
    if (!baseline.verdict.correct() || !naive_) continue;
    auto comparison = judge_.Compare(*naive_, *result_.winner, kPairs, seed);
    if (comparison)
      baseline.comparison = *comparison;
    else
      baseline.note = comparison.error().ToString();
  }
  for (const std::string& name : request_.vendors) {
    // A library that takes the runner down costs its own line and not the result.
    auto vendor = judge_.CompareVendor(name, *result_.winner, kPairs, seed);
    if (!vendor) vendor = Baseline{.name = name, .note = vendor.error().ToString()};
    result_.baselines.push_back(*std::move(vendor));
    TuneEvent event;
    event.kind = TuneEvent::Kind::kBaseline;
    event.baseline = &result_.baselines.back();
    listener(event);
  }
  return {};
}

/// What is said of it; nothing when there is nothing to learn from.
Result<std::string> TuneSession::LearnFromOthers(Store& store, const RunRecord& run,
                                                 std::shared_ptr<const SpaceIndex> index,
                                                 SearchOptions& options) const {
  ATUNNER_TRY(std::vector<Teacher> teachers,
              TeachersOf(store, run, request_.schedule->spec(), request_.schedule->space()));
  std::vector<PastRun> runs;
  std::string names;
  for (Teacher& teacher : teachers) {
    names += (names.empty() ? "" : ", ") + teacher.run;
    runs.push_back(std::move(teacher.past));
  }
  options.prior = Prior::Make(std::move(index), runs, request_.seed);
  return options.prior ? "learning from " + names + " (--no-transfer: from nothing)" : "";
}

Result<TuneResult> TuneSession::Run(Store* store, RunRecord run, const std::atomic<bool>& stop,
                                    const Listener& listener) {
  started_ = clock_.Now();
  spent_before_ = run.seconds;
  const ScheduleTemplate& schedule = *request_.schedule;
  ATUNNER_TRY(SpaceIndex built, SpaceIndex::Build(schedule.space(), schedule.spec().dims));
  const auto index = std::make_shared<const SpaceIndex>(std::move(built));
  result_.space_size = index->size();
  result_.floor_ns = PhysicalFloorNs(schedule.spec(), request_.profile);
  SearchOptions options{.seed = request_.seed, .first = schedule.Default()};
  options.objectives = request_.objectives.size();
  options.cost = [&](const Configuration& one) { return schedule.Cost(one, request_.profile); };
  std::string started;
  if (store && request_.transfer) {
    ATUNNER_TRY(started, LearnFromOthers(*store, run, index, options));
  }
  ATUNNER_TRY(const auto searcher, MakeSearcher(request_.strategy, index, options));
  if (store) {
    ATUNNER_TRY(result_.trials, store->Trials(run.id));
    for (const Trial& trial : result_.trials) searcher->Tell(ObservationOf(trial));
  }
  if (!result_.trials.empty()) started = fmt::format("resuming: {} trials are known", result_.trials.size());
  Emit(listener, TuneEvent::Kind::kStarted, nullptr, started);
  ATUNNER_RETURN_IF_ERROR(lanes_.Begin({schedule.spec(), request_.seed, 20}));
  ATUNNER_RETURN_IF_ERROR(MeasureNaive(listener));
  search_started_ = clock_.Now();
  ATUNNER_RETURN_IF_ERROR(Loop(*searcher, store, run, stop, listener));
  if (request_.objectives.size() > 1) result_.front = FrontOf(result_.trials, request_.objectives);
  ATUNNER_RETURN_IF_ERROR(ChooseWinner(listener));
  ATUNNER_RETURN_IF_ERROR(CompareBaselines(listener));
  result_.seconds = clock_.Now() - started_;
  Emit(listener, TuneEvent::Kind::kFinished, nullptr, result_.stop_reason);
  return std::move(result_);
}

}  // namespace atunner
