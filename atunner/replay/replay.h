// A strategy let loose on a recorded space, many times, and its score.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/replay/baseline.h"
#include "atunner/replay/recorded_space.h"
#include "atunner/search/searcher.h"
#include "atunner/search/surrogate/prior.h"

namespace atunner {

struct ReplayOptions {
  std::string strategy = "auto";
  int repeats = 30;  ///< with seeds seed, seed + 1, …
  uint64_t seed = 1;
  size_t batch = 1;  ///< configurations asked for at once, as parallel workers do
  /// In place of batches: asked for and not told while one is told, as compilers at work
  size_t ahead = 0;
  std::shared_ptr<const Prior> prior = nullptr;    ///< of earlier runs
  std::shared_ptr<const Policy> policy = nullptr;  ///< of the strategy `ppo`
  /// Standard deviation of one sample's logarithm around the recorded time: what a strategy is told
  /// is then the mean of `samples` of them, with its standard error.
  double noise = 0;
  int samples = 1;
};

struct ReplayScore {
  std::string space;
  uint64_t size = 0;
  SearchBaseline baseline;
  std::vector<double> mean_curve;    ///< best so far after each evaluation, mean of the repeats
  std::vector<double> median_curve;  ///< and their median
  double mean_score = 0;             ///< of the mean curve
  double median_score = 0;           ///< of the median curve
  double reach_rate = 0;             ///< share of repeats that came to the target within the budget
  /// As mean_score, over recorded seconds in place of evaluations
  double time_score = 0;
  double median_overhead_ms = 0;  ///< of the strategy, per evaluation
  double mean_overhead_ms = 0;
  bool asked_twice = false;  ///< a broken strategy
  /// Asked for nothing though the space was not exhausted: another one
  bool stopped_early = false;
};

/// What an earlier run with `auto` leaves behind: its trials on another recorded space, at most
/// `evaluations`. `reversed` turns its times upside down (1 / time): the worst that a prior can be.
Result<PastRun> PastRunOn(const RecordedSpace& space, uint64_t evaluations, uint64_t seed,
                          bool reversed = false);

/// How far the configuration that is declared the winner is from the best of the space, in true
/// times over the best, when each sample is noisy: mean over the repeats.
struct NoisyRegret {
  double lowest = 0;  ///< the lowest time seen wins
  /// Those that may be the best are sampled 16 times as often before one wins (finalists.h)
  double finalists = 0;
  double finalist_count = 0;
};
Result<NoisyRegret> ReplayWithNoise(const RecordedSpace& space, const ReplayOptions& options);

/// Until a repeat has found anything that works its best so far is the worst time recorded.
Result<ReplayScore> Replay(const RecordedSpace& space, const ReplayOptions& options,
                           const Clock& clock);

}  // namespace atunner
