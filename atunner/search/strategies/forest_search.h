// Model-based search with a forest in place of a Gaussian process: for rugged spaces and many
// observations.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// Expected improvement by a regression forest over uniform draws and the leaders' neighbours;
/// failures count as slow.
std::unique_ptr<Strategy> MakeForest(std::string name, std::shared_ptr<const SpaceIndex> index,
                                     SearchOptions options);

}  // namespace atunner
