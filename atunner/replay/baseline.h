// The expected result of random search on a recorded space. Scores of strategies are relative to
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "atunner/base/result.h"

namespace atunner {

/// Definitions of Willemsen et al., "A methodology for comparing optimization algorithms for
/// auto-tuning", FGCS 159 (2024). Times are in the unit of the record.
struct SearchBaseline {
  double best = 0;
  double median = 0;
  double worst = 0;
  double target = 0;  ///< best + 5 % of (median − best)
  /// Expected number of evaluations until random search meets the target, or as many as asked for
  uint64_t budget = 0;
  /// Element i is the expected best time of i + 1 successful configurations drawn without
  /// replacement. There are `budget` elements.
  std::vector<double> random;
};

/// Failed configurations (nullopt) are left out. kInvalidInput if fewer than two remain.
/// `budget`: 0 for the evaluations that random search is expected to need to meet the target.
Result<SearchBaseline> BaselineOf(std::span<const std::optional<double>> times,
                                  uint64_t budget = 0);

/// Mean over the budget of (random − curve) / (random − best). 0 means as good as random search, 1
/// that the first evaluation is the best of the space; a negative score is worse than random
/// search. `curve` holds the best time so far after each evaluation. Evaluations at which random
/// search has almost surely found the best are left out.
double ScoreOf(const SearchBaseline& baseline, std::span<const double> curve);

}  // namespace atunner
