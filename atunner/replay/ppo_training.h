// Trains the policy of search/strategies/ppo.h on recorded spaces by proximal policy optimisation.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "atunner/replay/recorded_space.h"
#include "atunner/search/strategies/ppo.h"

namespace atunner {

struct TrainingOptions {
  int iterations = 150;
  int episodes = 24;   ///< per iteration, each on a space drawn at random
  size_t steps = 100;  ///< evaluations of an episode
  /// Standard deviation of the logarithm of a time. Noise keeps the policy from learning to rely on
  /// single lucky configurations.
  double noise = 0.02;
  uint64_t seed = 1;
};

/// Called after every iteration with its number and the mean return of its episodes: 0 if each
/// episode began with the best configuration, −1 if none ever beat the median configuration.
using TrainingListener = std::function<void(int iteration, double mean_return)>;

/// Follows Schulman et al., "Proximal policy optimization algorithms" (2017): clipped objective,
/// generalised advantage estimation, Adam. Minimises the area under the curve of the best so far,
/// on a scale where 0 is the best of the space and 1 its median. kInvalidInput if there is no space
/// or one has fewer than two times.
Result<Policy> TrainPolicy(std::span<const RecordedSpace* const> spaces,
                           const TrainingOptions& options, const TrainingListener& listener);

}  // namespace atunner
