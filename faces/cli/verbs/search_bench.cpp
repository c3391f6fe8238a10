// `search-bench`: how good the search strategies are, on recorded tuning spaces.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "atunner/base/clock.h"
#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "atunner/replay/ppo_training.h"
#include "atunner/replay/replay.h"
#include "faces/cli/flags/checks.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {
namespace {

struct SearchBenchFlags {
  std::string spaces;
  std::vector<std::string> strategies = {"auto"};
  int repeats = 30;
  uint64_t seed = 1;
  std::string budget;  ///< evaluations, or a share of the space: "200", "5%"
  size_t batch = 1;
  size_t ahead = 0;
  bool transfer = false;       ///< with and without the run of another space of the same kernel
  double noise = 0;            ///< relative noise of one sample: how good the winner really is
  std::string train;           ///< file for the weights of a policy trained on the spaces
  bool leave_one_out = false;  ///< score `ppo` on each kernel with a policy trained on the others
  int iterations = 150;        ///< of training
};

constexpr size_t kPlotColumns = 40;

/// The evaluations that `--budget` grants on a space; 0 without the flag.
uint64_t BudgetOn(const SearchBenchFlags& flags, const RecordedSpace& space) {
  if (flags.budget.empty()) return 0;
  const double number = std::stod(flags.budget);
  const auto size = static_cast<double>(space.index->size());
  const double wanted = flags.budget.ends_with('%') ? size * number / 100 : number;
  return static_cast<uint64_t>(std::clamp(std::ceil(wanted), 1.0, size));
}

/// "" if a text is a number of evaluations or a percentage of a space, else what is wrong.
std::string BudgetProblem(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool percent = std::string_view(rest, end) == "%";
  const bool is_number = error == std::errc() && (rest == end || percent) && number > 0;
  if (is_number && (!percent || number <= 100)) return "";
  return "'" + text + "' is no budget: give evaluations or a share of the space, as 200 or 5%";
}

/// The score evaluation by evaluation, as a row of blocks: empty is random search or worse, full
/// the best found.
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
  return Json{
      {"space", score.space},
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
  fmt::print("{:<26} {:<10} {:>6} {:>6} {:>7} {:>7} {:>7} {:>6} {:>9}  {}\n", "space", "strategy",
             "size", "budget", "score", "median", "time", "reach", "ms/eval",
             "score over the budget");
}

void PrintRow(const ReplayScore& score, const std::string& strategy) {
  fmt::print("{:<26} {:<10} {:>6} {:>6} {:>7.3f} {:>7.3f} {:>7.3f} {:>5.0f}% {:>9.4f}  {}\n",
             score.space, strategy, score.size, score.baseline.budget, score.mean_score,
             score.median_score, score.time_score, 100 * score.reach_rate, score.median_overhead_ms,
             Plot(score));
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
  return Json{{"strategy", strategy},           {"score", sum.score / n},
              {"median_score", sum.median / n}, {"time_score", sum.time / n},
              {"reach_rate", sum.reach / n},    {"worst_score", sum.worst},
              {"spaces", sum.spaces},           {"overhead_ms", sum.overhead}};
}

constexpr uint64_t kPastEvaluations = 200;  // of the run that is learned from

/// Whether a space is of the same kernel: its parameters have the same names.
bool IsAlike(const RecordedSpace& a, const RecordedSpace& b) {
  const std::vector<std::string> names = a.index->space().Names();
  return std::ranges::is_permutation(names, b.index->space().Names());
}

/// The scores of one ordered pair of spaces of a kernel.
struct TransferScores {
  double without = 0;   ///< without the run on the other space
  double with = 0;      ///< with it
  double reversed = 0;  ///< with it, best and worst exchanged
};

/// The mean score on `space`, with the run on `from` if there is one.
Result<double> TransferScore(const SearchBenchFlags& flags, const RecordedSpace& space,
                             const RecordedSpace* from, bool reversed) {
  ReplayOptions options{flags.strategies.front(), flags.repeats, flags.seed, BudgetOn(flags, space),
                        flags.batch};
  if (from != nullptr) {
    ATUNNER_TRY(PastRun run, PastRunOn(*from, kPastEvaluations, flags.seed, reversed));
    options.prior = Prior::Make(space.index, std::vector{std::move(run)}, flags.seed);
  }
  ATUNNER_TRY(const ReplayScore score, Replay(space, options, SystemClock()));
  return score.mean_score;
}

void PrintTransfer(const std::string& space, const std::string& from, const TransferScores& s) {
  fmt::print("{:<26} {:<26} {:>7.3f} {:>7.3f} {:>9.3f}\n", space, from, s.without, s.with,
             s.reversed);
  std::fflush(stdout);
}

/// Scores one space with the run on each other space of its kernel; a row of JSON for each.
Status BenchTransferTo(const SearchBenchFlags& flags, bool json, const RecordedSpace& space,
                       const std::vector<RecordedSpace>& spaces, TransferScores& sums, Json& rows) {
  TransferScores scores;
  ATUNNER_TRY(scores.without, TransferScore(flags, space, nullptr, false));
  for (const RecordedSpace& from : spaces) {
    if (&from == &space || !IsAlike(space, from)) continue;
    ATUNNER_TRY(scores.with, TransferScore(flags, space, &from, false));
    ATUNNER_TRY(scores.reversed, TransferScore(flags, space, &from, true));
    rows.push_back({{"space", space.name},
                    {"from", from.name},
                    {"without", scores.without},
                    {"with", scores.with},
                    {"reversed", scores.reversed}});
    sums.without += scores.without;
    sums.with += scores.with;
    sums.reversed += scores.reversed;
    if (!json) PrintTransfer(space.name, from.name, scores);
  }
  return {};
}

/// `--transfer`: every ordered pair of spaces of one kernel, without and with the other's run, and
/// with it reversed.
Result<int> BenchTransfer(const SearchBenchFlags& flags, const Common& common,
                          const std::vector<RecordedSpace>& spaces) {
  Json rows = Json::array();
  if (!common.json)
    fmt::print("{:<26} {:<26} {:>7} {:>7} {:>9}\n", "space", "earlier run on", "without", "with",
               "reversed");
  TransferScores sums;
  for (const RecordedSpace& space : spaces)
    ATUNNER_RETURN_IF_ERROR(BenchTransferTo(flags, common.json, space, spaces, sums, rows));
  if (rows.empty()) return Invalid("no two of the spaces are of the same kernel", flags.spaces);
  const auto n = static_cast<double>(rows.size());
  if (common.json)
    PrintJson({{"repeats", flags.repeats}, {"strategy", flags.strategies.front()}, {"rows", rows}});
  else
    fmt::print("{:<53} {:>7.3f} {:>7.3f} {:>9.3f}\n", fmt::format("mean of {} pairs", rows.size()),
               sums.without / n, sums.with / n, sums.reversed / n);
  return 0;
}

/// `--noise`: how far the declared winner is from the best in truth, as a share of the best's time.
Result<int> BenchNoise(const SearchBenchFlags& flags, const Common& common,
                       const std::vector<RecordedSpace>& spaces) {
  Json rows = Json::array();
  if (!common.json)
    fmt::print("{:<26} {:>14} {:>14} {:>10}\n", "space", "lowest wins %", "finalists %",
               "finalists");
  double sums[2] = {};
  for (const RecordedSpace& space : spaces) {
    ReplayOptions options{flags.strategies.front(), flags.repeats, flags.seed,
                          BudgetOn(flags, space), flags.batch};
    options.noise = flags.noise;
    ATUNNER_TRY(const NoisyRegret regret, ReplayWithNoise(space, options));
    rows.push_back({{"space", space.name},
                    {"lowest", regret.lowest},
                    {"finalists", regret.finalists},
                    {"finalist_count", regret.finalist_count}});
    sums[0] += regret.lowest;
    sums[1] += regret.finalists;
    if (common.json) continue;
    fmt::print("{:<26} {:>14.3f} {:>14.3f} {:>10.1f}\n", space.name, 100 * regret.lowest,
               100 * regret.finalists, regret.finalist_count);
    std::fflush(stdout);
  }
  const auto n = static_cast<double>(rows.size());
  if (common.json)
    PrintJson({{"repeats", flags.repeats}, {"noise", flags.noise}, {"rows", rows}});
  else
    fmt::print("{:<26} {:>14.3f} {:>14.3f}\n", "mean", 100 * sums[0] / n, 100 * sums[1] / n);
  return 0;
}

Result<std::shared_ptr<const Policy>> Train(const SearchBenchFlags& flags,
                                            std::span<const RecordedSpace* const> spaces) {
  TrainingOptions options;
  options.iterations = flags.iterations;
  options.seed = flags.seed;
  double sum = 0;
  const auto say = [&](int iteration, double mean_return) {
    sum += mean_return;
    if (iteration % 10 != 9) return;
    fmt::print(stderr, "training on {} spaces, iteration {}: mean return {:.3f}\n", spaces.size(),
               iteration + 1, sum / 10);
    sum = 0;
  };
  ATUNNER_TRY(Policy policy, TrainPolicy(spaces, options, say));
  return std::make_shared<const Policy>(std::move(policy));
}

/// `--train`: the weights as a list that a C++ initialiser takes.
Result<int> WritePolicy(const SearchBenchFlags& flags, const std::vector<RecordedSpace>& spaces) {
  std::vector<const RecordedSpace*> all;
  for (const RecordedSpace& space : spaces) all.push_back(&space);
  ATUNNER_TRY(const auto policy, Train(flags, all));
  std::string text;
  for (float weight : policy->actor.parameters()) text += fmt::format("{:.6e}f,\n", weight);
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(flags.train, text));
  return 0;
}

/// Policies for `--leave-one-out`: trained once per kernel, on the spaces of the others.
class LeftOut {
 public:
  LeftOut(const SearchBenchFlags& flags, const std::vector<RecordedSpace>& spaces)
      : flags_(flags), spaces_(spaces) {}
  Result<std::shared_ptr<const Policy>> For(const RecordedSpace& space) {
    if (!flags_.leave_one_out) return nullptr;
    std::vector<const RecordedSpace*> others;
    for (const RecordedSpace& other : spaces_) {
      if (!IsAlike(space, other)) others.push_back(&other);
    }
    auto& policy = policies_[space.index->space().Names()];
    if (!policy) {
      ATUNNER_TRY(policy, Train(flags_, others));
    }
    return policy;
  }

 private:
  const SearchBenchFlags& flags_;
  const std::vector<RecordedSpace>& spaces_;
  std::map<std::vector<std::string>, std::shared_ptr<const Policy>> policies_;
};

/// The strategies of the flags, and random search beside them.
std::vector<std::string> StrategiesOf(const SearchBenchFlags& flags) {
  std::vector<std::string> strategies = flags.strategies;
  if (strategies == std::vector<std::string>{"all"}) {
    strategies.clear();
    for (const StrategyInfo& info : Strategies()) strategies.push_back(info.name);
  }
  if (std::ranges::find(strategies, "random") == strategies.end()) strategies.push_back("random");
  return strategies;
}

/// Replays each strategy on each space.
class ScoreBench {
 public:
  ScoreBench(const SearchBenchFlags& flags, bool json, const std::vector<RecordedSpace>& spaces)
      : flags_(flags),
        json_(json),
        spaces_(spaces),
        strategies_(StrategiesOf(flags)),
        sums_(strategies_.size()),
        left_out_(flags, spaces) {}

  /// The exit code is 1 when a strategy asked twice for a configuration or stopped early.
  Result<int> Run() {
    if (!json_) PrintHeader();
    for (const RecordedSpace& space : spaces_) {
      for (size_t s = 0; s < strategies_.size(); ++s) ATUNNER_RETURN_IF_ERROR(Score(space, s));
    }
    PrintSummaries();
    return broken_ ? 1 : 0;
  }

 private:
  Status Score(const RecordedSpace& space, size_t s) {
    ReplayOptions options{strategies_[s], flags_.repeats, flags_.seed, BudgetOn(flags_, space),
                          flags_.batch};
    options.ahead = flags_.ahead;
    ATUNNER_TRY(options.policy, left_out_.For(space));
    ATUNNER_TRY(const ReplayScore score, Replay(space, options, SystemClock()));
    sums_[s].Add(score);
    if (json_)
      rows_.push_back(JsonOf(score, strategies_[s]));
    else
      PrintRow(score, strategies_[s]);
    if (score.asked_twice || score.stopped_early) Complain(score, strategies_[s]);
    return {};
  }

  void Complain(const ReplayScore& score, const std::string& strategy) {
    broken_ = true;
    fmt::print(stderr, "atunner: strategy {} {} on {}\n", strategy,
               score.asked_twice ? "asked twice for a configuration" : "stopped before the budget",
               score.space);
  }

  void PrintSummaries() const {
    Json summaries = Json::array();
    for (size_t s = 0; s < strategies_.size(); ++s)
      summaries.push_back(SummaryOf(sums_[s], strategies_[s]));
    if (json_) {
      PrintJson({{"repeats", flags_.repeats},
                 {"batch", flags_.batch},
                 {"rows", rows_},
                 {"summary", summaries}});
      return;
    }
    for (const Json& one : summaries) PrintSummary(one);
  }

  static void PrintSummary(const Json& one) {
    fmt::print(
        "{:<26} {:<10} score {:.3f} (worst {:.3f}), median {:.3f}, time {:.3f}, reach {:.1f} %, ≤ "
        "{:.3f} ms/eval\n",
        fmt::format("mean of {} spaces", one["spaces"].get<int>()),
        one["strategy"].get<std::string>(), one["score"].get<double>(),
        one["worst_score"].get<double>(), one["median_score"].get<double>(),
        one["time_score"].get<double>(), 100 * one["reach_rate"].get<double>(),
        one["overhead_ms"].get<double>());
  }

  const SearchBenchFlags& flags_;
  bool json_;
  const std::vector<RecordedSpace>& spaces_;
  std::vector<std::string> strategies_;
  std::vector<Sum> sums_;
  LeftOut left_out_;
  Json rows_ = Json::array();
  bool broken_ = false;
};

Result<int> SearchBench(const SearchBenchFlags& flags, const Context& context) {
  ATUNNER_TRY(const std::vector<RecordedSpace> spaces, ReadRecordedSpaces(flags.spaces));
  if (flags.transfer) return BenchTransfer(flags, context.common, spaces);
  if (flags.noise > 0) return BenchNoise(flags, context.common, spaces);
  if (!flags.train.empty()) return WritePolicy(flags, spaces);
  return ScoreBench(flags, context.common.json, spaces).Run();
}

void AddSearch(CLI::App* verb, SearchBenchFlags& flags) {
  verb->add_option("--strategy", flags.strategies, "strategies, or all; random is always beside");
  verb->add_option("--repeats", flags.repeats, "runs per space, each with its own seed")
      ->check(CLI::Range(1, 10000));
  verb->add_option("--seed", flags.seed, "seed of the first run")->check(NotNegative());
  verb->add_option("--budget", flags.budget,
                   "evaluations of a run, as 200, or a share of the space, as 5%; without it, as "
                   "many as random search needs to meet the target")
      ->check(BudgetProblem);
  verb->add_option("--batch", flags.batch, "configurations asked for at once")
      ->check(CLI::Range(1, 10000));
  verb->add_option("--ahead", flags.ahead,
                   "configurations that are asked for before the result of an earlier one is told")
      ->check(CLI::Range(0, 10000));
  verb->add_flag("--transfer", flags.transfer,
                 "with and without what a run on another space of the kernel found");
}

}  // namespace

void AddSearchBench(VerbList& verbs) {
  const auto flags = std::make_shared<SearchBenchFlags>();
  CLI::App* verb = verbs.Add("search-bench", "score search strategies on recorded tuning spaces",
                             [flags](const Context& c) { return SearchBench(*flags, c); });
  verb->add_option("--spaces", flags->spaces,
                   "folder of Kernel Tuner cache files (*.json, *.json.gz)")
      ->required();
  AddSearch(verb, *flags);
  verb->add_option("--noise", flags->noise,
                   "relative noise of one sample: how good the winner is in truth")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--train", flags->train,
                   "train the policy of ppo on the spaces, write its weights to this file");
  verb->add_flag("--leave-one-out", flags->leave_one_out,
                 "score ppo on each kernel, trained on the other kernels");
  verb->add_option("--iterations", flags->iterations, "of training")->check(CLI::Range(1, 100000));
}

}  // namespace atunner::cli
