#include "atunner/tune/tune_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "atunner/base/random.h"
#include "atunner/measure/harness.h"
#include "atunner/search/strategies/finalists.h"
#include "atunner/tune/transfer.h"

namespace atunner {
namespace {

constexpr double kCloseToFloor = 1.04;  // nothing worth looking for is left
constexpr int kPairs = 11;
// candidates compiling before anything is known of compiling and judging
constexpr double kFirstAhead = 4;
constexpr double kSlack = 1.5;        // compile times scatter
constexpr double kMostPerThread = 2;  // one compiling, one waiting for the judge
constexpr std::chrono::milliseconds kAttention{1};
constexpr uint64_t kMaxVerifiedAgain = 5;

/// Adds the time it lives.
class Stopwatch {
 public:
  Stopwatch(const Clock& clock, double& seconds)
      : clock_(clock), seconds_(seconds), start_(clock.Now()) {}
  ~Stopwatch() { seconds_ += clock_.Now() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  const Clock& clock_;
  double& seconds_;
  double start_;
};

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

Compiled TuneSession::CompileOne(const Configuration& configuration,
                                 const std::stop_token& stop) const {
  Compiled compiled{configuration, request_.schedule->Render(configuration), CompileOutcome{}};
  if (compiled.rendered)
    compiled.outcome = compiler_.Compile(
        {compiled.rendered->source, EntriesOf(compiled.rendered->plan), request_.arch}, stop);
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
    trial.verdict = {outcome.timed_out ? VerdictKind::kTimeout : VerdictKind::kCompileError,
                     outcome.error,
                     {},
                     false};
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

bool TuneSession::WantsEnergy() const {
  return std::ranges::find(request_.objectives, Objective::kEnergy) != request_.objectives.end();
}

JudgeOrder TuneSession::ScreeningOrder() const {
  JudgeOrder order;
  order.energy = WantsEnergy();
  order.seed = request_.seed;
  // A slow one may be good for something else.
  if (MinimisesTimeAlone()) order.incumbent_ns = BestNs();
  return order;
}

std::optional<Trial> TuneSession::StartJudging(CandidateKernel candidate, Trial trial) {
  const int64_t ticket = ++tickets_;
  const auto twin = numbers_.find(
      judged_before_.FirstOf(candidate, request_.schedule->spec(), ticket));
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
  lanes_.Start({std::move(trial), std::make_shared<const CandidateKernel>(std::move(candidate))},
               ScreeningOrder());
  return std::nullopt;
}

/// Takes an answer. The device gets its next candidate before the books are kept.
Status TuneSession::FinishOne(Desk& desk) {
  Judged judged = lanes_.Take();
  if (!judged.answer) return std::unexpected(judged.answer.error());
  result_.judge_seconds += judged.seconds;
  TimeSpent& spent = result_.spent;
  spent.verifying += judged.answer->verify_seconds;
  spent.timing += judged.answer->timing_seconds;
  spent.handing_over += judged.seconds - judged.answer->verify_seconds -
                        judged.answer->timing_seconds;
  if (judged.job.again) {
    spent.again += judged.seconds;
    HearAgain(std::move(judged), desk);
  } else {
    Trial trial = std::move(judged.job.trial);
    trial.judge_seconds = judged.seconds;
    trial.verify_seconds = judged.answer->verify_seconds;
    trial.timing_seconds = judged.answer->timing_seconds;
    trial.verdict = std::move(judged.answer->verdict);
    trial.measurement = std::move(judged.answer->measurement);
    trial.estimate = std::move(judged.answer->estimate);
    trial.note = std::move(judged.answer->note);
    numbers_[trial.number] = static_cast<int64_t>(result_.trials.size()) + 1;
    Hear(std::move(trial), desk);
    if (!request_.in_order) leaders_.Keep(result_.trials.back(), std::move(judged.job.candidate));
  }
  if (!request_.in_order) ATUNNER_RETURN_IF_ERROR(StartReady(desk));
  return WriteDown(desk);
}

/// A leader's second result. Who fails now is no leader.
void TuneSession::HearAgain(Judged judged, Desk& desk) {
  again_.reset();
  const int64_t number = judged.job.trial.number;
  Trial& trial = result_.trials[static_cast<size_t>(number - 1)];
  improved_.push_back(number);
  if (judged.answer->verdict.correct() && judged.answer->measurement) {
    trial.measurement = Joined(*trial.measurement, *std::move(judged.answer->measurement));
    desk.searcher.Tell(ObservationOf(trial));
    return;
  }
  trial.verdict = std::move(judged.answer->verdict);
  trial.measurement.reset();
}

std::optional<double> TuneSession::BestNs() const {
  std::optional<double> best;
  for (const Trial& trial : result_.trials) {
    const auto ns = trial.ObjectiveNs();
    if (ns && (!best || *ns < *best)) best = ns;
  }
  return best;
}

void TuneSession::Emit(const Listener& listener, TuneEvent event) const {
  event.best_ns = BestNs();
  event.trials_done = static_cast<int64_t>(result_.trials.size());
  event.seconds = spent_before_ + clock_.Now() - started_;
  event.space_size = result_.space_size;
  listener(event);
}

std::string TuneSession::StopReason(const std::stop_token& stop) const {
  if (stop.stop_requested()) return "stopped by the user";
  const Budget& budget = request_.budget;
  if (budget.trials && static_cast<int64_t>(result_.trials.size()) >= *budget.trials)
    return "trial budget spent";
  // The baseline's time is not the search's: a plain kernel of half a second would leave nothing of
  // a short budget. Nor is it over before what the schedule itself says is best was judged: others
  // may be compiled sooner.
  const bool late = budget.seconds &&
                    spent_before_ + clock_.Now() - search_started_ >= *budget.seconds;
  if (late && !first_guess_) return "time budget spent";
  const auto best = MinimisesTimeAlone() ? BestNs() : std::nullopt;
  if (best && *best <= kCloseToFloor * result_.floor_ns) return "within 4 % of the physical floor";
  return "";
}

/// How many candidates are asked for ahead of the judges: as many as compiling takes to keep up
/// with them, and no more, since each is asked for without knowing of those before it; at the
/// beginning fewer, when every result counts.
size_t TuneSession::Depth(const Searcher& searcher) const {
  const auto threads = static_cast<double>(std::max(1, request_.compile_threads));
  const auto lanes = static_cast<double>(lanes_.count());
  const double judging = result_.judge_seconds - result_.spent.again;
  double wanted = kFirstAhead;
  if (judging > 0) wanted = 1 + kSlack * lanes * result_.compile_seconds / judging;
  const double first = std::max(kFirstAhead, threads / 2);
  if (searcher.learns())
    wanted = std::min(wanted, std::max(first, 0.5 * static_cast<double>(result_.trials.size())));
  const double most = request_.in_order ? threads : kMostPerThread * threads;
  return static_cast<size_t>(
      std::max(lanes, std::min(most, std::max(lanes + 1, std::ceil(wanted)))));
}

/// Asks for as many as the depth and the budget leave.
void TuneSession::Refill(Desk& desk) {
  size_t room = Depth(desk.searcher);
  if (request_.budget.trials) {
    const auto spent = static_cast<int64_t>(result_.trials.size() + lanes_.busy()) -
                       (again_ ? 1 : 0);
    room = std::min(room,
                    static_cast<size_t>(std::max<int64_t>(0, *request_.budget.trials - spent)));
  }
  const size_t compiling = desk.ahead.size() - desk.ahead.ready();
  const auto threads = static_cast<size_t>(std::max(1, request_.compile_threads));
  if (desk.ahead.size() >= room || compiling >= threads) return;
  const Stopwatch watch(clock_, result_.spent.for_proposals);
  for (Configuration& configuration :
       desk.searcher.Ask(std::min(room - desk.ahead.size(), threads - compiling))) {
    if (result_.trials.empty() && !first_guess_) first_guess_ = configuration;
    desk.ahead.Submit(std::move(configuration));
  }
}

void TuneSession::Hear(Trial trial, Desk& desk) {
  trial.number = static_cast<int64_t>(result_.trials.size()) + 1;
  trial.proposer = trial.number == 1 ? "default" : std::string(desk.searcher.name());
  const Stopwatch watch(clock_, result_.spent.for_proposals);
  desk.searcher.Tell(ObservationOf(trial));
  if (first_guess_ == trial.configuration) first_guess_.reset();
  result_.trials.push_back(std::move(trial));
}

Status TuneSession::WriteDown(Desk& desk) {
  const Stopwatch watch(clock_, result_.spent.books);
  const ParameterSpace& space = request_.schedule->space();
  for (; written_ < result_.trials.size(); ++written_) {
    const Trial& trial = result_.trials[written_];
    if (desk.store) ATUNNER_RETURN_IF_ERROR(desk.store->AppendTrial(desk.run.id, space, trial));
    Emit(desk.listener, {.kind = TuneEvent::Kind::kTrial, .trial = trial});
  }
  for (int64_t number : std::exchange(improved_, {})) {
    const Trial& trial = result_.trials[static_cast<size_t>(number - 1)];
    if (desk.store) ATUNNER_RETURN_IF_ERROR(desk.store->UpdateTrial(desk.run.id, space, trial));
  }
  return {};
}

Status TuneSession::StartCompiled(Compiled compiled, Desk& desk) {
  ATUNNER_TRY(std::optional<Trial> done, StartOne(std::move(compiled)));
  if (done) Hear(*std::move(done), desk);
  return {};
}

Status TuneSession::StartReady(Desk& desk) {
  while (lanes_.HasFree() && desk.ahead.ready() > 0 && StopReason(desk.stop).empty()) {
    auto compiled = desk.ahead.Take([] { return true; }, 0);
    if (compiled) ATUNNER_RETURN_IF_ERROR(StartCompiled(*std::move(compiled), desk));
  }
  return {};
}

/// False: no leader is worth it.
bool TuneSession::StartAgain() {
  if (request_.in_order || again_ || request_.objectives.front() != Objective::kTime) return false;
  again_ = leaders_.WorthMeasuring(result_.trials);
  if (!again_) return false;
  JudgeOrder order;
  order.seed = request_.seed;
  lanes_.Start({result_.trials[static_cast<size_t>(*again_ - 1)], leaders_.KernelOf(*again_), true},
               order);
  return true;
}

/// Keeps the compilers at work until a device has answered; false when one without work could have
/// some before that.
bool TuneSession::AwaitAnswer(Desk& desk) {
  if (request_.in_order) return true;
  while (!lanes_.IsReady(kAttention)) {
    Refill(desk);
    if (lanes_.HasFree() && desk.ahead.ready() > 0) return false;
  }
  return true;
}

/// Starts what can be started, or waits for what is under way.
Status TuneSession::NextStep(Desk& desk) {
  if (!lanes_.HasFree() || desk.ahead.size() == 0 || lanes_.IsReady())
    return AwaitAnswer(desk) ? FinishOne(desk) : StartReady(desk);
  if (desk.ahead.ready() == 0 && StartAgain()) return {};
  const Stopwatch watch(clock_, result_.spent.for_compile);
  std::optional<Compiled> compiled = desk.ahead.Take(
      [&] { return lanes_.IsReady() || !StopReason(desk.stop).empty(); },
      request_.in_order ? 1 : 0);
  if (!compiled) return {};
  ATUNNER_RETURN_IF_ERROR(StartCompiled(*std::move(compiled), desk));
  return WriteDown(desk);
}

Status TuneSession::Loop(Desk& desk) {
  const Stopwatch watch(clock_, result_.spent.search);
  while (true) {
    result_.stop_reason = StopReason(desk.stop);
    if (!result_.stop_reason.empty()) break;
    Refill(desk);
    if (desk.ahead.size() == 0 && lanes_.busy() == 0) {
      result_.stop_reason = "every configuration was tried";
      break;
    }
    ATUNNER_RETURN_IF_ERROR(NextStep(desk));
  }
  while (lanes_.busy() > 0) ATUNNER_RETURN_IF_ERROR(FinishOne(desk));
  return WriteDown(desk);
}

Status TuneSession::MeasureNaive(const Listener& listener) {
  const auto naive = request_.plain ? request_.schedule->Naive() : std::nullopt;
  if (!naive) return {};
  const Stopwatch watch(clock_, result_.spent.plain);
  Baseline baseline;
  // A user's kernel is its own baseline.
  const bool as_given = request_.schedule->spec().oracle.kind == Oracle::Kind::kKernel;
  baseline.name = as_given ? "as given" : "naive";
  ATUNNER_TRY(CompileOutcome outcome,
              compiler_.Compile({naive->source, EntriesOf(naive->plan), request_.arch}));
  if (!outcome.ok())
    return Fail(ErrorCode::kInternal, "the plain kernel does not compile: " + outcome.error);
  // The plain kernel serves any size: it is checked at the smallest the schedule names.
  naive_ = CandidateKernel{*std::move(outcome.module), naive->plan,
                           request_.schedule->CheckDims(request_.schedule->Default())};
  ATUNNER_TRY(
      JudgeAnswer answer,
      judge_.Examine(*naive_, {.plain = !as_given, .incumbent_ns = {}, .seed = request_.seed}));
  // What says what is right is the same kernel: no candidate would come to an end of its judging
  // either.
  if (as_given && answer.verdict.kind == VerdictKind::kTimeout) {
    return Invalid("the kernel as given does not finish: " + answer.verdict.reason,
                   request_.schedule->spec().name,
                   "make the problem smaller, or tune on the GPU itself");
  }
  baseline.verdict = std::move(answer.verdict);
  baseline.measurement = std::move(answer.measurement);
  baseline.estimate = std::move(answer.estimate);
  if (!baseline.verdict.stands()) baseline.note = baseline.verdict.reason;
  result_.baselines.push_back(std::move(baseline));
  Emit(listener, {.kind = TuneEvent::Kind::kBaseline, .baseline = result_.baselines.back()});
  return {};
}

Status TuneSession::ChooseWinner(const Listener& listener) {
  const Objective objective = request_.objectives.front();
  const Stopwatch watch(clock_, result_.spent.finals);
  std::vector<const Trial*> ranking;
  for (const Trial& trial : result_.trials) {
    if (ValueOf(trial, objective) && trial.same_as == 0) ranking.push_back(&trial);
  }
  std::ranges::stable_sort(ranking, {},
                           [&](const Trial* trial) { return *ValueOf(*trial, objective); });
  if (ranking.empty()) return {};
  const size_t finalists = FinalistsOf(ranking, objective);
  Emit(listener, {.kind = TuneEvent::Kind::kFinalists,
                  .text = fmt::format("verifying the best {} again with new inputs", finalists)});
  // A fresh process and seeds nobody saw: what survives here is reported.
  const uint64_t seed = FinalSeed();
  ATUNNER_RETURN_IF_ERROR(judge_.Begin({request_.schedule->spec(), seed, 60}));
  const JudgeOrder order{
      .time = true, .thorough = true, .energy = WantsEnergy(), .incumbent_ns = {}, .seed = seed};
  size_t survived = 0;
  // Whoever fails now deceived the screening; the search for one that did not goes on until it is
  // found.
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
    if (!value) {
      Emit(listener, {.kind = TuneEvent::Kind::kFinalists,
                      .text = fmt::format("trial {} is refused, {}: {}", again.number,
                                          Name(again.verdict.kind), again.verdict.reason)});
      continue;
    }
    const bool leads = !result_.best || *value < *ValueOf(*result_.best, objective);
    if (leads) CheckVirtually(candidate, again, listener);
    if (!again.verdict.stands()) continue;
    ++survived;
    if (!leads) continue;
    result_.best = std::move(again);
    result_.winner = candidate;
    result_.winner_source = *compiled.rendered;
  }
  return {};
}

void TuneSession::CheckVirtually(const CandidateKernel& candidate, Trial& trial,
                                 const Listener& listener) {
  const std::string undecided = virtual_check_.Examine(candidate, trial.verdict);
  if (!trial.verdict.stands()) {
    Emit(listener,
         {.kind = TuneEvent::Kind::kFinalists,
          .text = fmt::format("trial {} is refused, {}", trial.number, trial.verdict.reason)});
  } else if (!undecided.empty()) {
    Emit(listener, {.kind = TuneEvent::Kind::kFinalists,
                    .text = fmt::format("trial {} is not examined on the virtual GPU: {}",
                                        trial.number, undecided)});
  }
}

Status TuneSession::CompareBaselines(const Listener& listener) {
  if (!result_.winner || !result_.best->measurement) return {};
  const Stopwatch watch(clock_, result_.spent.baselines);
  const uint64_t seed = FinalSeed();
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
    Emit(listener, {.kind = TuneEvent::Kind::kBaseline, .baseline = result_.baselines.back()});
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

Result<TuneResult> TuneSession::Run(Store* store, const RunRecord& run, const std::stop_token& stop,
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
    written_ = result_.trials.size();
  }
  if (!result_.trials.empty())
    started = fmt::format("resuming: {} trials are known", result_.trials.size());
  Emit(listener, {.kind = TuneEvent::Kind::kStarted, .text = started});
  // Compiling runs ahead of judging: the device does not wait for the compiler, not even for the
  // first ones.
  CompileAhead ahead([this](const Configuration& one, const std::stop_token& end) {
    return CompileOne(one, end);
  });
  Desk desk{*searcher, store, run, stop, listener, ahead};
  Refill(desk);
  ATUNNER_RETURN_IF_ERROR(lanes_.Begin({schedule.spec(), request_.seed, 20}));
  ATUNNER_RETURN_IF_ERROR(MeasureNaive(listener));
  virtual_check_.Begin(schedule.spec(), FinalSeed(), naive_);
  search_started_ = clock_.Now();
  ATUNNER_RETURN_IF_ERROR(Loop(desk));
  if (request_.objectives.size() > 1) result_.front = FrontOf(result_.trials, request_.objectives);
  ATUNNER_RETURN_IF_ERROR(ChooseWinner(listener));
  ATUNNER_RETURN_IF_ERROR(CompareBaselines(listener));
  result_.seconds = clock_.Now() - started_;
  Emit(listener, {.kind = TuneEvent::Kind::kFinished, .text = result_.stop_reason});
  return std::move(result_);
}

}  // namespace atunner
