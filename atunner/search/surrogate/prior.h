// What is believed of a space before its first trial: by earlier runs of the same kernel (at other
// sizes, on other GPUs), and by a rough cost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "atunner/search/searcher.h"
#include "atunner/search/space/coordinates.h"
#include "atunner/search/surrogate/acquisition.h"
#include "atunner/search/surrogate/regression_forest.h"

namespace atunner {

/// An earlier run: configurations of a space of its own.
struct PastRun {
  ParameterSpace space;
  std::vector<Observation> trials;
};

/// Of each run only the order and the relative distances count, so that sizes and GPUs of any speed
/// may mix.
class Prior {
 public:
  /// Every run must have the parameters of `index` by name, in any order; numbers that it does not
  /// list count as the nearest that it does. nullptr when nothing usable is left.
  static std::shared_ptr<const Prior> Make(std::shared_ptr<const SpaceIndex> index,
                                           std::span<const PastRun> runs, uint64_t seed);

  /// What `runs` (nullptr: none) say, and what `options.cost` says of this very task. `runs` where
  /// there is no cost.
  static std::shared_ptr<const Prior> WithCost(std::shared_ptr<const Prior> runs,
                                               std::shared_ptr<const SpaceIndex> index,
                                               const SearchOptions& options);

  /// What is expected: standardised log time, about -2 for the best, 0 for the middle.
  double Of(uint64_t at) const;
  /// The runs' best configurations as far as they are valid here, best first, no two next to each
  /// other; in turns with what is asked first and the cheapest, of which no two cost the same.
  const std::vector<uint64_t>& leaders() const { return leaders_; }
  bool knows_cost() const { return static_cast<bool>(cost_); }

 private:
  explicit Prior(std::shared_ptr<const SpaceIndex> index)
      : index_(std::move(index)), coordinates_(*index_) {}
  size_t Differences(uint64_t at, const std::vector<uint16_t>& there) const;
  bool NextToALeader(uint64_t at) const;
  void RankByCost(const SearchOptions& options);

  std::shared_ptr<const SpaceIndex> index_;
  Coordinates coordinates_;
  RegressionForest forest_;
  bool has_runs_ = false;
  std::vector<uint64_t> leaders_;
  std::function<std::optional<double>(const Configuration&)> cost_;
  ValueScale costs_;  ///< of their logarithms
};

}  // namespace atunner
