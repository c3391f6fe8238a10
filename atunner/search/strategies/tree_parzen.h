// Tree-structured Parzen estimator.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// Bergstra et al., NIPS 2011: per parameter the densities of the good and of the rest (failures
/// among them); of some configurations drawn like the good ones, the one with the highest ratio.
std::unique_ptr<Strategy> MakeTreeParzen(std::string name, std::shared_ptr<const SpaceIndex> index,
                                         SearchOptions options);

}  // namespace atunner
