// Several strategies that share what they learn.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// The default. A Gaussian process sees far with few observations, a forest copes with rugged
/// spaces and many: they take turns, two questions to one, once there is enough for a forest.
std::unique_ptr<Strategy> MakeAuto(std::string name, std::shared_ptr<const SpaceIndex> index,
                                   SearchOptions options);
/// A bandit gives each question to the member that lately found the most among the best twentieth
/// (upper confidence bound, with forgetting).
std::unique_ptr<Strategy> MakePortfolio(std::string name, std::shared_ptr<const SpaceIndex> index,
                                        SearchOptions options);

}  // namespace atunner
