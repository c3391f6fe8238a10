// Proximal policy optimisation of search/strategies/ppo.h's policy on recorded spaces.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "atunner/replay/recorded_space.h"
#include "atunner/search/strategies/ppo.h"

namespace atunner {

struct TrainingOptions {
  int iterations = 150;
  int episodes = 24;    ///< per iteration, each on a space drawn at random
  size_t steps = 100;   ///< evaluations of an episode
  double noise = 0.02;  ///< standard deviation of a time's logarithm, so that luck does not pay
  uint64_t seed = 1;
};

/// Told after every iteration: its number and the mean return of its episodes (0: the best at once,
/// -1: like the median configuration all the time).
using TrainingListener = std::function<void(int iteration, double mean_return)>;

/// Schulman et al. 2017: clipped objective, generalised advantages, Adam. Minimises the area under
/// the curve of the best so far, on a scale where 0 is the best of the space and 1 its median. At
/// least one space, each with a time.
Result<Policy> TrainPolicy(std::span<const RecordedSpace* const> spaces,
                           const TrainingOptions& options, const TrainingListener& listener);

}  // namespace atunner
