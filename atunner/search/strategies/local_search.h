// Strategies that walk from neighbour to neighbour.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// First improvement among the Hamming neighbours, in random order; restarts at a random
/// configuration from a local optimum.
std::unique_ptr<Strategy> MakeGreedy(std::string name, std::shared_ptr<const SpaceIndex> index,
                                     SearchOptions options);
/// First improvement as above, but restarts at a few random changes of the best configuration.
std::unique_ptr<Strategy> MakeIterated(std::string name, std::shared_ptr<const SpaceIndex> index,
                                       SearchOptions options);
/// Evaluates a sample of the neighbours, then moves to the best of them that was not visited
/// recently, even when it is worse.
std::unique_ptr<Strategy> MakeTabu(std::string name, std::shared_ptr<const SpaceIndex> index,
                                   SearchOptions options);
/// Simulated annealing over Hamming neighbours; reheats when it has cooled down.
std::unique_ptr<Strategy> MakeAnnealing(std::string name, std::shared_ptr<const SpaceIndex> index,
                                        SearchOptions options);

}  // namespace atunner
