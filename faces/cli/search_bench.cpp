// `search-bench`: how good the search strategies are, on recorded tuning spaces.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "atunner/base/clock.h"
#include "atunner/model/json.h"
#include "atunner/replay/replay.h"
#include "faces/cli/cli.h"

namespace atunner::cli {
namespace {

constexpr size_t kPlotColumns = 40;

/// The score evaluation by evaluation, as a row of blocks: empty is random search or worse, full the best found.
std::string Plot(const ReplayScore& score) {
  static constexpr std::string_view kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  const size_t budget = score.mean_curve.size();
  for (size_t column = 0; column < kPlotColumns; ++column) {
    const size_t i = std::min(budget - 1, (2 * column + 1) * budget / (2 * kPlotColumns));
    const double room = score.baseline.random[i] - score.baseline.best;
    const double part = room > 0 ? (score.baseline.random[i] - score.mean_curve[i]) / room : 1.0;
    line += kBlocks[static_cast<size_t>(std::lround(std::clamp(part, 0.0, 1.0) * 8.0))];
  }
  return line;
}

Json JsonOf(const ReplayScore& score, const std::string& strategy) {
  return Json{{"space", score.space},
              {"strategy", strategy},
              {"size", score.size},
              {"budget", score.baseline.budget},
              {"best_ms", score.baseline.best},
              {"target_ms", score.baseline.target},
              {"score", score.mean_score},
              {"median_score", score.median_score},
              {"time_score", score.time_score},
              {"reach_rate", score.reach_rate},
              {"overhead_ms", {{"median", score.median_overhead_ms}, {"mean", score.mean_overhead_ms}}},
              {"best_so_far_ms", score.mean_curve},
              {"random_ms", score.baseline.random}};
}

void PrintHeader() {
  fmt::print("{:<26} {:<10} {:>6} {:>6} {:>7} {:>7} {:>7} {:>6} {:>9}  {}\n", "space", "strategy", "size", "budget",
             "score", "median", "time", "reach", "ms/eval", "score over the budget");
}

void PrintRow(const ReplayScore& score, const std::string& strategy) {
  fmt::print("{:<26} {:<10} {:>6} {:>6} {:>7.3f} {:>7.3f} {:>7.3f} {:>5.0f}% {:>9.4f}  {}\n", score.space, strategy,
             score.size, score.baseline.budget, score.mean_score, score.median_score, score.time_score,
             100 * score.reach_rate, score.median_overhead_ms, Plot(score));
  std::fflush(stdout);
}

struct Sum {
  double score = 0;
  double median = 0;
  double time = 0;
  double reach = 0;
  double worst = INFINITY;
  double overhead = 0;
  int spaces = 0;
  void Add(const ReplayScore& one) {
    score += one.mean_score;
    median += one.median_score;
    time += one.time_score;
    reach += one.reach_rate;
    worst = std::min(worst, one.mean_score);
    overhead = std::max(overhead, one.median_overhead_ms);
    ++spaces;
  }
};

Json SummaryOf(const Sum& sum, const std::string& strategy) {
  const double n = sum.spaces;
  return Json{{"strategy", strategy},       {"score", sum.score / n},      {"median_score", sum.median / n},
              {"time_score", sum.time / n}, {"reach_rate", sum.reach / n}, {"worst_score", sum.worst},
              {"spaces", sum.spaces},       {"overhead_ms", sum.overhead}};
}

}  // namespace

Result<int> SearchBench(const SearchBenchFlags& flags, const Common& common) {
  ATUNNER_TRY(const std::vector<RecordedSpace> spaces, ReadRecordedSpaces(flags.spaces));
  std::vector<std::string> strategies = flags.strategies;
  if (strategies == std::vector<std::string>{"all"}) {
    strategies.clear();
    for (const StrategyInfo& info : Strategies()) strategies.push_back(info.name);
  }
  if (std::ranges::find(strategies, "random") == strategies.end()) strategies.push_back("random");
  Json rows = Json::array();
  std::vector<Sum> sums(strategies.size());
  int broken = 0;
  if (!common.json) PrintHeader();
  for (const RecordedSpace& space : spaces) {
    for (size_t s = 0; s < strategies.size(); ++s) {
      const ReplayOptions options{strategies[s], flags.repeats, flags.seed, flags.batch};
      ATUNNER_TRY(const ReplayScore score, Replay(space, options, SystemClock()));
      sums[s].Add(score);
      if (common.json)
        rows.push_back(JsonOf(score, strategies[s]));
      else
        PrintRow(score, strategies[s]);
      if (!score.asked_twice && !score.stopped_early) continue;
      ++broken;
      fmt::print(stderr, "atunner: strategy {} {} on {}\n", strategies[s],
                 score.asked_twice ? "asked twice for a configuration" : "stopped before the budget", score.space);
    }
  }
  Json summaries = Json::array();
  for (size_t s = 0; s < strategies.size(); ++s) summaries.push_back(SummaryOf(sums[s], strategies[s]));
  if (common.json) {
    fmt::print(
        "{}\n",
        DumpJson(Json{{"repeats", flags.repeats}, {"batch", flags.batch}, {"rows", rows}, {"summary", summaries}}));
    return broken ? 1 : 0;
  }
  for (const Json& one : summaries)
    fmt::print(
        "{:<26} {:<10} score {:.3f} (worst {:.3f}), median {:.3f}, time {:.3f}, reach {:.1f} %, ≤ {:.3f} ms/eval\n",
        fmt::format("mean of {} spaces", one["spaces"].get<int>()), one["strategy"].get<std::string>(),
        one["score"].get<double>(), one["worst_score"].get<double>(), one["median_score"].get<double>(),
        one["time_score"].get<double>(), 100 * one["reach_rate"].get<double>(), one["overhead_ms"].get<double>());
  return broken ? 1 : 0;
}

}  // namespace atunner::cli
