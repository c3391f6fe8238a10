#include "atunner/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <span>

#include "atunner/search/strategies/finalists.h"

namespace atunner {
namespace {

/// One run of a strategy on a recorded space. The vectors have one element per evaluation.
struct Run {
  std::vector<double> best;         ///< the lowest time so far, in the unit of the record
  std::vector<double> spent_ms;     ///< recorded cost of all evaluations so far
  std::vector<double> overhead_ms;  ///< time that the strategy itself took
  std::vector<Observation> observed;
  bool asked_twice = false;
  bool stopped_early = false;
};

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double MeanOf(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Answers from the record in place of a device, with noise around the recorded time.
class NoisyDevice {
 public:
  NoisyDevice(const RecordedSpace& space, const ReplayOptions& options, uint64_t seed)
      : space_(space), options_(options), random_(Mix64(seed ^ 0x401e)) {}

  Observation Measure(const Configuration& one, int samples) {
    const auto& time = space_.time_ms[space_.index->IndexOf(one)];
    if (!time) return {one, std::nullopt};
    const double error = options_.noise / std::sqrt(samples);
    return {one, *time * 1e6 * (options_.noise > 0 ? std::exp(error * random_.Normal()) : 1.0),
            error};
  }

 private:
  const RecordedSpace& space_;
  const ReplayOptions& options_;
  Random random_;
};

/// Drives a searcher over a recorded space in the way the tuning loop drives it over a device.
class SearchDriver {
 public:
  SearchDriver(const RecordedSpace& space, const SearchBaseline& baseline,
               const ReplayOptions& options, uint64_t seed, const Clock& clock)
      : space_(space),
        baseline_(baseline),
        options_(options),
        clock_(clock),
        device_(space, options, seed),
        asked_(space.index->size(), false),
        best_(baseline.worst) {}

  Run Drive(Searcher& searcher) {
    const size_t at_once = options_.ahead > 0 ? 1 : options_.batch;
    while (run_.best.size() < baseline_.budget) {
      double overhead = AskForMore(searcher);
      if (pending_.empty()) {
        run_.stopped_early = std::ranges::count(asked_, true) < static_cast<long>(asked_.size());
        break;
      }
      const size_t count = std::min(at_once, pending_.size());
      for (size_t i = 0; i < count; ++i) overhead += EvaluateNext(searcher);
      run_.overhead_ms.insert(run_.overhead_ms.end(), count,
                              overhead * 1e3 / static_cast<double>(count));
    }
    run_.best.resize(baseline_.budget, best_);
    run_.spent_ms.resize(baseline_.budget, spent_ms_);
    return std::move(run_);
  }

 private:
  /// Fills up the pending configurations. Returns the seconds that the searcher took.
  double AskForMore(Searcher& searcher) {
    const size_t most = std::min<size_t>(options_.ahead > 0 ? options_.ahead + 1 : options_.batch,
                                         baseline_.budget - run_.best.size());
    const double start = clock_.Now();
    const auto fresh = searcher.Ask(most - std::min(most, pending_.size()));
    const double overhead = clock_.Now() - start;
    for (const Configuration& one : fresh) {
      const uint64_t at = space_.index->IndexOf(one);
      ATUNNER_CHECK(at < space_.index->size());
      if (asked_[at]) run_.asked_twice = true;
      asked_[at] = true;
    }
    pending_.insert(pending_.end(), fresh.begin(), fresh.end());
    return overhead;
  }

  /// Looks the oldest pending configuration up. Returns the seconds that the searcher took.
  double EvaluateNext(Searcher& searcher) {
    const uint64_t at = space_.index->IndexOf(pending_.front());
    if (const auto& time = space_.time_ms[at]; time.has_value()) best_ = std::min(best_, *time);
    spent_ms_ += space_.spent_ms[at];
    run_.best.push_back(best_);
    run_.spent_ms.push_back(spent_ms_);
    run_.observed.push_back(device_.Measure(pending_.front(), options_.samples));
    pending_.pop_front();
    const double start = clock_.Now();
    searcher.Tell(run_.observed.back());
    return clock_.Now() - start;
  }

  const RecordedSpace& space_;
  const SearchBaseline& baseline_;
  const ReplayOptions& options_;
  const Clock& clock_;
  NoisyDevice device_;
  Run run_;
  std::vector<bool> asked_;  ///< by index of the space
  std::deque<Configuration> pending_;
  double best_;
  double spent_ms_ = 0;
};

Result<Run> RunOnce(const RecordedSpace& space, const SearchBaseline& baseline,
                    const ReplayOptions& options, uint64_t seed, const Clock& clock) {
  SearchOptions search{.seed = seed};
  search.prior = options.prior;
  search.policy = options.policy;
  ATUNNER_TRY(const auto searcher, MakeSearcher(options.strategy, space.index, search));
  return SearchDriver(space, baseline, options, seed, clock).Drive(*searcher);
}

/// The best so far over recorded time in place of evaluations. Element i belongs to the moment at
/// which random search, at the mean cost of an evaluation, finishes its evaluation i.
std::vector<double> OverTime(const Run& run, double worst, double mean_cost) {
  std::vector<double> curve;
  size_t done = 0;
  for (size_t i = 0; i < run.best.size(); ++i) {
    const double now = mean_cost * static_cast<double>(i + 1);
    while (done < run.best.size() && run.spent_ms[done] <= now) ++done;
    curve.push_back(done == 0 ? worst : run.best[done - 1]);
  }
  return curve;
}

std::vector<double> Aggregate(const std::vector<std::vector<double>>& curves,
                              double (*by)(const std::vector<double>&)) {
  std::vector<double> out;
  std::vector<double> column(curves.size());
  for (size_t i = 0; i < curves[0].size(); ++i) {
    for (size_t r = 0; r < curves.size(); ++r) column[r] = curves[r][i];
    out.push_back(by(column));
  }
  return out;
}

Status Check(const ReplayOptions& options) {
  if (options.repeats < 1 || options.batch < 1 || options.samples < 1)
    return Invalid("repeats, batch and samples must be at least 1");
  if (!(options.noise >= 0)) return Invalid("noise must be at least 0");
  return {};
}

Result<SearchBaseline> NamedBaseline(const RecordedSpace& space, uint64_t budget = 0) {
  auto baseline = BaselineOf(space.time_ms, std::min(budget, space.index->size()));
  if (!baseline) baseline.error().where = space.name;
  return baseline;
}

double TrueTime(const RecordedSpace& space, const Observation& one) {
  return *space.time_ms[space.index->IndexOf(one.configuration)];
}

/// The successful observations, the fastest first.
std::vector<Observation> Ranked(std::vector<Observation> observed) {
  std::erase_if(observed, [](const Observation& one) { return !one.objective_ns; });
  std::ranges::stable_sort(observed, {}, [](const Observation& one) { return *one.objective_ns; });
  return observed;
}

size_t FinalistCountOf(const std::vector<Observation>& ranked) {
  std::vector<Contender> ranking;
  for (const Observation& one : ranked) ranking.push_back({*one.objective_ns, one.relative_error});
  return FinalistCount(ranking);
}

/// The fastest of the finalists when each is measured again with 16 times as many samples.
Observation WinnerOf(std::span<const Observation> finalists, NoisyDevice& device, int samples) {
  constexpr int kMoreSamples = 16;
  std::optional<Observation> winner;
  for (const Observation& one : finalists) {
    const Observation again = device.Measure(one.configuration, kMoreSamples * samples);
    if (!winner || *again.objective_ns < *winner->objective_ns) winner = again;
  }
  return *winner;
}

/// All repeats of a replay: their curves, one per repeat, and what they have in common.
struct Repeats {
  std::vector<std::vector<double>> curves;     ///< best so far over evaluations
  std::vector<std::vector<double>> over_time;  ///< best so far over recorded time
  std::vector<double> overheads_ms;
  int reached = 0;  ///< repeats that came to the target
};

void AddRun(Run run, const SearchBaseline& baseline, double mean_cost_ms, Repeats& repeats,
            ReplayScore& score) {
  repeats.over_time.push_back(OverTime(run, baseline.worst, mean_cost_ms));
  repeats.reached += run.best.back() <= baseline.target;
  repeats.overheads_ms.insert(repeats.overheads_ms.end(), run.overhead_ms.begin(),
                              run.overhead_ms.end());
  score.asked_twice |= run.asked_twice;
  score.stopped_early |= run.stopped_early;
  repeats.curves.push_back(std::move(run.best));
}

}  // namespace

Result<PastRun> PastRunOn(const RecordedSpace& space, uint64_t evaluations, uint64_t seed,
                          bool reversed) {
  ATUNNER_TRY(SearchBaseline baseline, NamedBaseline(space));
  baseline.budget = std::min(baseline.budget, evaluations);
  ATUNNER_TRY(Run run, RunOnce(space, baseline, {}, seed, SystemClock()));
  for (Observation& trial : run.observed) {
    if (reversed && trial.objective_ns) trial.objective_ns = 1e12 / *trial.objective_ns;
  }
  return PastRun{space.index->space(), std::move(run.observed)};
}

Result<NoisyRegret> ReplayWithNoise(const RecordedSpace& space, const ReplayOptions& options) {
  ATUNNER_RETURN_IF_ERROR(Check(options));
  ATUNNER_TRY(const SearchBaseline baseline, NamedBaseline(space, options.budget));
  NoisyRegret regret;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    ATUNNER_TRY(Run run, RunOnce(space, baseline, options, seed, SystemClock()));
    const std::vector<Observation> ranked = Ranked(std::move(run.observed));
    if (ranked.empty()) return Invalid("no configuration that works was found", space.name);
    const size_t finalists = FinalistCountOf(ranked);
    NoisyDevice device(space, options, Mix64(seed));
    const Observation winner = WinnerOf(std::span(ranked).first(finalists), device,
                                        options.samples);
    regret.lowest += TrueTime(space, ranked[0]) / baseline.best - 1;
    regret.finalists += TrueTime(space, winner) / baseline.best - 1;
    regret.finalist_count += static_cast<double>(finalists);
  }
  for (double* sum : {&regret.lowest, &regret.finalists, &regret.finalist_count})
    *sum /= options.repeats;
  return regret;
}

Result<ReplayScore> Replay(const RecordedSpace& space, const ReplayOptions& options,
                           const Clock& clock) {
  ReplayScore score;
  score.space = space.name;
  score.size = space.index->size();
  ATUNNER_RETURN_IF_ERROR(Check(options));
  ATUNNER_TRY(score.baseline, NamedBaseline(space, options.budget));
  Repeats repeats;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    ATUNNER_TRY(Run run, RunOnce(space, score.baseline, options, seed, clock));
    AddRun(std::move(run), score.baseline, MeanOf(space.spent_ms), repeats, score);
  }
  score.mean_curve = Aggregate(repeats.curves, MeanOf);
  score.median_curve = Aggregate(repeats.curves,
                                 [](const std::vector<double>& v) { return MedianOf(v); });
  score.mean_score = ScoreOf(score.baseline, score.mean_curve);
  score.median_score = ScoreOf(score.baseline, score.median_curve);
  score.time_score = ScoreOf(score.baseline, Aggregate(repeats.over_time, MeanOf));
  score.reach_rate = static_cast<double>(repeats.reached) / options.repeats;
  score.median_overhead_ms = MedianOf(repeats.overheads_ms);
  score.mean_overhead_ms = MeanOf(repeats.overheads_ms);
  return score;
}

}  // namespace atunner
