// Search with several objectives at once. Smaller is better for all of them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "atunner/search/searcher.h"
#include "atunner/search/strategies/strategy.h"

namespace atunner {

/// Indices of the Pareto-optimal points, ordered by the first objective: no other point is as good
/// in every objective and better in one. The first of several equal points counts.
std::vector<size_t> ParetoFront(std::span<const std::vector<double>> points);

/// Several copies of a strategy take turns. Each minimises another weighted sum of the logarithms
/// of the objectives, so that no objective needs a scale: one copy for each objective nearly alone,
/// and one for all with equal weights. All observe every result. Observations have `objectives` - 1
/// others.
using MakeStrategy = std::unique_ptr<Strategy> (*)(std::string name,
                                                   std::shared_ptr<const SpaceIndex>,
                                                   SearchOptions);
std::unique_ptr<Searcher> MakeScalarised(std::string name, MakeStrategy make,
                                         std::shared_ptr<const SpaceIndex> index,
                                         const SearchOptions& options);

}  // namespace atunner
