// Several strategies that share what they learn.
#pragma once

#include "atunner/search/strategy.h"

namespace atunner {

/// A bandit gives each question to the member that lately found the most among the best twentieth (upper confidence
/// bound, with forgetting); every member hears every result.
std::unique_ptr<Strategy> MakePortfolio(std::string name, std::shared_ptr<const SpaceIndex> index,
                                        SearchOptions options);

}  // namespace atunner
