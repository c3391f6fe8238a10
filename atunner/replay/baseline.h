// What random search is expected to find, and the scale that a score is measured on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "atunner/base/result.h"

namespace atunner {

/// Source of the definitions: Willemsen et al., "A methodology for comparing optimization
/// algorithms for auto-tuning", FGCS 159 (2024). Times in the unit of the record.
struct SearchBaseline {
  double best = 0;
  double median = 0;
  double worst = 0;
  double target = 0;  ///< best + 5 % of (median − best)
  /// Evaluations after which random search is expected to have come to the target
  uint64_t budget = 0;
  /// [i]: expected best of i + 1 successful configurations drawn without replacement; `budget` of
  /// them.
  std::vector<double> random;
};

/// Of the configurations that did not fail. kInvalidInput when fewer than two did not.
Result<SearchBaseline> BaselineOf(std::span<const std::optional<double>> times);

/// Mean over the budget of (random − mine) / (random − best): 0 is random search, 1 the best at
/// once, below 0 worse than random. `mine` has one best-so-far per evaluation. Evaluations at which
/// random search is as good as certain to have found the best are left out.
double ScoreOf(const SearchBaseline& baseline, std::span<const double> mine);

}  // namespace atunner
