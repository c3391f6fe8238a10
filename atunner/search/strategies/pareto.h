// Several objectives at once, all of them smaller is better.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "atunner/search/searcher.h"
#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// Numbers of the points that no other point beats: none is as good in every objective and better
/// in one. Of equal points the first counts. In the order of the first objective.
std::vector<size_t> ParetoFront(std::span<const std::vector<double>> points);

/// Asks strategies in turns that minimise different products of powers of the objectives (weighted
/// sums of logarithms, so that no objective needs a scale): nearly one objective alone, each of
/// them, and all alike. Every one knows what was asked and hears every result. Observations have
/// `objectives` - 1 others.
using MakeStrategy = std::unique_ptr<Strategy> (*)(std::string name,
                                                   std::shared_ptr<const SpaceIndex>,
                                                   SearchOptions);
std::unique_ptr<Searcher> MakeScalarised(std::string name, MakeStrategy make,
                                         std::shared_ptr<const SpaceIndex> index,
                                         const SearchOptions& options);

}  // namespace atunner
