#include "atunner/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "atunner/search/strategies/finalists.h"

namespace atunner {
namespace {

struct Run {
  std::vector<double> best;      ///< so far, per evaluation
  std::vector<double> spent_ms;  ///< so far, as recorded
  std::vector<double> overhead_ms;
  std::vector<Observation> told;
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

/// What a device with noise would say of a recorded configuration.
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

Result<Run> RunOnce(const RecordedSpace& space, const SearchBaseline& baseline,
                    const ReplayOptions& options, uint64_t seed, const Clock& clock) {
  SearchOptions search{.seed = seed};
  search.prior = options.prior;
  search.policy = options.policy;
  ATUNNER_TRY(const auto searcher, MakeSearcher(options.strategy, space.index, search));
  NoisyDevice device(space, options, seed);
  Run run;
  std::vector<bool> asked(space.index->size(), false);
  double best = baseline.worst;
  double spent = 0;
  std::deque<Configuration> pending;
  const size_t at_once = options.ahead > 0 ? 1 : options.batch;
  while (run.best.size() < baseline.budget) {
    const size_t most = std::min<size_t>(options.ahead > 0 ? options.ahead + 1 : options.batch,
                                         baseline.budget - run.best.size());
    const double start = clock.Now();
    const auto fresh = searcher->Ask(most - std::min(most, pending.size()));
    double overhead = clock.Now() - start;
    for (const Configuration& one : fresh) {
      const uint64_t at = space.index->IndexOf(one);
      ATUNNER_CHECK(at < space.index->size());
      if (asked[at]) run.asked_twice = true;
      asked[at] = true;
    }
    pending.insert(pending.end(), fresh.begin(), fresh.end());
    if (pending.empty()) {
      run.stopped_early = std::ranges::count(asked, true) < static_cast<long>(asked.size());
      break;
    }
    const size_t count = std::min(at_once, pending.size());
    for (size_t i = 0; i < count; ++i) {
      const uint64_t at = space.index->IndexOf(pending.front());
      if (const auto& time = space.time_ms[at]; time.has_value()) best = std::min(best, *time);
      spent += space.spent_ms[at];
      run.best.push_back(best);
      run.spent_ms.push_back(spent);
      run.told.push_back(device.Measure(pending.front(), options.samples));
      pending.pop_front();
      const double told = clock.Now();
      searcher->Tell(run.told.back());
      overhead += clock.Now() - told;
    }
    run.overhead_ms.insert(run.overhead_ms.end(), count,
                           overhead * 1e3 / static_cast<double>(count));
  }
  run.best.resize(baseline.budget, best);
  run.spent_ms.resize(baseline.budget, spent);
  return run;
}

/// The budget in time is what its evaluations cost at the mean; a run is looked at when random
/// search, at that mean, would have finished each evaluation.
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

Result<SearchBaseline> NamedBaseline(const RecordedSpace& space) {
  auto baseline = BaselineOf(space.time_ms);
  if (!baseline) baseline.error().where = space.name;
  return baseline;
}

double TrueTime(const RecordedSpace& space, const Observation& one) {
  return *space.time_ms[space.index->IndexOf(one.configuration)];
}

}  // namespace

Result<PastRun> PastRunOn(const RecordedSpace& space, uint64_t evaluations, uint64_t seed,
                          bool reversed) {
  ATUNNER_TRY(SearchBaseline baseline, NamedBaseline(space));
  baseline.budget = std::min(baseline.budget, evaluations);
  ATUNNER_TRY(Run run, RunOnce(space, baseline, {}, seed, SystemClock()));
  for (Observation& trial : run.told) {
    if (reversed && trial.objective_ns) trial.objective_ns = 1e12 / *trial.objective_ns;
  }
  return PastRun{space.index->space(), std::move(run.told)};
}

Result<NoisyRegret> ReplayWithNoise(const RecordedSpace& space, const ReplayOptions& options) {
  constexpr int kAtLength = 16;
  ATUNNER_RETURN_IF_ERROR(Check(options));
  ATUNNER_TRY(const SearchBaseline baseline, NamedBaseline(space));
  NoisyRegret regret;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    ATUNNER_TRY(Run run, RunOnce(space, baseline, options, seed, SystemClock()));
    std::erase_if(run.told, [](const Observation& one) { return !one.objective_ns; });
    if (run.told.empty()) return Invalid("nothing that works was found", space.name);
    std::ranges::stable_sort(run.told, {},
                             [](const Observation& one) { return *one.objective_ns; });
    std::vector<Contender> ranking;
    for (const Observation& one : run.told)
      ranking.push_back({*one.objective_ns, one.relative_error});
    const size_t finalists = FinalistCount(ranking);
    NoisyDevice device(space, options, Mix64(seed));
    std::optional<Observation> winner;
    for (size_t i = 0; i < finalists; ++i) {
      const Observation again = device.Measure(run.told[i].configuration,
                                               kAtLength * options.samples);
      if (!winner || *again.objective_ns < *winner->objective_ns) winner = again;
    }
    regret.lowest += TrueTime(space, run.told[0]) / baseline.best - 1;
    regret.finalists += TrueTime(space, *winner) / baseline.best - 1;
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
  ATUNNER_TRY(score.baseline, NamedBaseline(space));
  ATUNNER_RETURN_IF_ERROR(Check(options));
  const double mean_cost = MeanOf(space.spent_ms);
  std::vector<std::vector<double>> curves;
  std::vector<std::vector<double>> over_time;
  std::vector<double> overheads;
  int reached = 0;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    ATUNNER_TRY(Run run, RunOnce(space, score.baseline, options,
                                 options.seed + static_cast<uint64_t>(repeat), clock));
    over_time.push_back(OverTime(run, score.baseline.worst, mean_cost));
    reached += run.best.back() <= score.baseline.target;
    overheads.insert(overheads.end(), run.overhead_ms.begin(), run.overhead_ms.end());
    score.asked_twice |= run.asked_twice;
    score.stopped_early |= run.stopped_early;
    curves.push_back(std::move(run.best));
  }
  score.mean_curve = Aggregate(curves, MeanOf);
  score.median_curve = Aggregate(curves, [](const std::vector<double>& v) { return MedianOf(v); });
  score.mean_score = ScoreOf(score.baseline, score.mean_curve);
  score.median_score = ScoreOf(score.baseline, score.median_curve);
  score.time_score = ScoreOf(score.baseline, Aggregate(over_time, MeanOf));
  score.reach_rate = static_cast<double>(reached) / options.repeats;
  score.median_overhead_ms = MedianOf(overheads);
  score.mean_overhead_ms = MeanOf(overheads);
  return score;
}

}  // namespace atunner
