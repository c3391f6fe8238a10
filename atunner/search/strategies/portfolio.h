// Several strategies that share what they learn.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// The default strategy. A Gaussian process is good with few observations, a forest with many and
/// in rugged spaces. They take turns, two proposals to one, once there are enough results for a
/// forest.
std::unique_ptr<Strategy> MakeAuto(std::string name, std::shared_ptr<const SpaceIndex> index,
                                   SearchOptions options);
/// A multi-armed bandit (upper confidence bound, with forgetting) chooses the member that proposes
/// next: the one that recently found the most among the best 5 %.
std::unique_ptr<Strategy> MakePortfolio(std::string name, std::shared_ptr<const SpaceIndex> index,
                                        SearchOptions options);

}  // namespace atunner
