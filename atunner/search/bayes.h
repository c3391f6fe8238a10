// Bayesian optimisation over a finite space.
#pragma once

#include "atunner/search/searcher.h"

namespace atunner {

/// Gaussian process (Matérn 5/2) on the logarithm of time; expected improvement times the probability of success;
/// batches by the constant liar. The length scale is chosen by marginal likelihood from a grid.
std::unique_ptr<Searcher> MakeBayes(std::shared_ptr<const SpaceIndex> index, SearchOptions options);

}  // namespace atunner
