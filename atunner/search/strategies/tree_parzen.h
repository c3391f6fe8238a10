// Tree-structured Parzen estimator.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// Bergstra et al., NIPS 2011. For each parameter it estimates the density of values among the good
/// configurations and among the rest, failures included. It draws some configurations from the
/// first and proposes the one with the highest ratio of the two.
std::unique_ptr<Strategy> MakeTreeParzen(std::string name, std::shared_ptr<const SpaceIndex> index,
                                         SearchOptions options);

}  // namespace atunner
