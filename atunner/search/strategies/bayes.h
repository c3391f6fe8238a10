// Bayesian optimisation over a finite space.
#pragma once

#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// Gaussian process (Matérn 5/2, a length scale per aspect) on the logarithm of time, cut off above
/// the middle; expected improvement over a pool: a uniform sample and the Hamming neighbours of the
/// leaders. Failures count as slow. Configurations without a result yet count as the process
/// predicts them.
std::unique_ptr<Strategy> MakeBayes(std::string name, std::shared_ptr<const SpaceIndex> index,
                                    SearchOptions options);

}  // namespace atunner
