// Strategies that keep a population. All are steady-state: a result changes the population when it
// comes, so that lost results and batches of any size do no harm.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// Tournaments, uniform crossover, mutation of one parameter at the mean; a newcomer replaces the
/// worst.
std::unique_ptr<Strategy> MakeGenetic(std::string name, std::shared_ptr<const SpaceIndex> index,
                                      SearchOptions options);
/// best/1/bin on the positions of values, rounded to what is valid.
std::unique_ptr<Strategy> MakeDifferential(std::string name,
                                           std::shared_ptr<const SpaceIndex> index,
                                           SearchOptions options);
/// Constricted particles on the positions of values, rounded to what is valid.
std::unique_ptr<Strategy> MakeParticleSwarm(std::string name,
                                            std::shared_ptr<const SpaceIndex> index,
                                            SearchOptions options);

}  // namespace atunner
