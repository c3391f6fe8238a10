// Runs a search strategy on a recorded space many times and scores it. No device is involved: the
// record answers, so that a score needs seconds and is free of the noise of measurements.
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
  /// Evaluations in place of those that random search needs to meet the target; 0: these.
  uint64_t budget = 0;
  size_t batch = 1;  ///< configurations per Ask, as with parallel workers
  /// Replaces batches if above 0: so many configurations are asked for and still without a result
  /// whenever the strategy gets one, as with compilers that work ahead of the device.
  size_t ahead = 0;
  std::shared_ptr<const Prior> prior = nullptr;    ///< knowledge from earlier runs
  std::shared_ptr<const Policy> policy = nullptr;  ///< weights of the strategy `ppo`
  /// Standard deviation of the logarithm of one sample around the recorded time. The strategy gets
  /// the mean of `samples` samples with its standard error.
  double noise = 0;
  int samples = 1;
};

struct ReplayScore {
  std::string space;
  uint64_t size = 0;
  SearchBaseline baseline;
  std::vector<double> mean_curve;    ///< best so far after each evaluation, mean of the repeats
  std::vector<double> median_curve;  ///< best so far after each evaluation, median of the repeats
  double mean_score = 0;             ///< ScoreOf(mean_curve)
  double median_score = 0;           ///< ScoreOf(median_curve)
  double reach_rate = 0;  ///< share of the repeats that came to the target within the budget
  double time_score = 0;  ///< as mean_score, over recorded seconds in place of evaluations
  double median_overhead_ms = 0;  ///< time that the strategy takes per evaluation, median
  double mean_overhead_ms = 0;    ///< time that the strategy takes per evaluation, mean
  /// The strategy asked for a configuration a second time: it is broken.
  bool asked_twice = false;
  /// The strategy asked for no configuration before the space was exhausted: it is broken.
  bool stopped_early = false;
};

/// The trials of a run with `auto` on a recorded space, at most `evaluations`, as a prior for
/// others. `reversed` replaces each time by its inverse, which makes the worst prior possible.
Result<PastRun> PastRunOn(const RecordedSpace& space, uint64_t evaluations, uint64_t seed,
                          bool reversed = false);

/// The regret of declaring a winner from noisy samples: (its recorded time / the best recorded
/// time) − 1, mean over the repeats.
struct NoisyRegret {
  double lowest = 0;  ///< if the lowest time seen wins
  /// If the candidates that may be the best (finalists.h) are measured again first, with 16 times
  /// as many samples.
  double finalists = 0;
  double finalist_count = 0;  ///< mean number of these candidates
};
/// kInvalidInput if options are out of range or a repeat finds no configuration that works.
Result<NoisyRegret> ReplayWithNoise(const RecordedSpace& space, const ReplayOptions& options);

/// The best so far of a repeat is the worst recorded time until the repeat finds a configuration
/// that works. kInvalidInput if options are out of range or fewer than two configurations work.
Result<ReplayScore> Replay(const RecordedSpace& space, const ReplayOptions& options,
                           const Clock& clock);

}  // namespace atunner
