// Strategies that walk from neighbour to neighbour.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// First improvement among the Hamming neighbours, in random order; from a local optimum to a
/// random start.
std::unique_ptr<Strategy> MakeGreedy(std::string name, std::shared_ptr<const SpaceIndex> index,
                                     SearchOptions options);
/// The same, but from a local optimum on to a few random changes of the best.
std::unique_ptr<Strategy> MakeIterated(std::string name, std::shared_ptr<const SpaceIndex> index,
                                       SearchOptions options);
/// Looks at a sample of the neighbours, then moves to the best of them that it has not been at
/// lately, better or not.
std::unique_ptr<Strategy> MakeTabu(std::string name, std::shared_ptr<const SpaceIndex> index,
                                   SearchOptions options);
/// Simulated annealing over Hamming neighbours; reheats when it has cooled down.
std::unique_ptr<Strategy> MakeAnnealing(std::string name, std::shared_ptr<const SpaceIndex> index,
                                        SearchOptions options);

}  // namespace atunner
