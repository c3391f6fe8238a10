// Strategies that do not use results.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// All configurations in the order of their indices.
std::unique_ptr<Strategy> MakeExhaustive(std::string name, std::shared_ptr<const SpaceIndex> index,
                                         SearchOptions options);
/// Uniform, without replacement.
std::unique_ptr<Strategy> MakeRandom(std::string name, std::shared_ptr<const SpaceIndex> index,
                                     SearchOptions options);
/// Rounds in which every parameter's values are spread evenly and paired at random; rounded to what
/// is valid.
std::unique_ptr<Strategy> MakeLatinHypercube(std::string name,
                                             std::shared_ptr<const SpaceIndex> index,
                                             SearchOptions options);

}  // namespace atunner
