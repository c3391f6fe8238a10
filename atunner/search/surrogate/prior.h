// The prior over a space, before its first trial: from earlier runs of the same kernel (at other
// sizes, on other GPUs), and from a rough cost model.
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

/// An earlier run: its space, and the results of some of its configurations.
struct PastRun {
  ParameterSpace space;
  std::vector<Observation> trials;
};

/// Only the order and the relative distances of the times of each run are used, so that runs of any
/// size and GPU can be combined.
class Prior {
 public:
  /// Every run must have the parameters of `index` by name, in any order. A number that `index`
  /// does not list counts as the nearest one that it lists. nullptr when no run is usable.
  static std::shared_ptr<const Prior> Make(std::shared_ptr<const SpaceIndex> index,
                                           std::span<const PastRun> runs, uint64_t seed);

  /// The prior of `runs` (may be null) combined with `options.cost` for this task. Returns `runs`
  /// when there is no cost model.
  static std::shared_ptr<const Prior> WithCost(std::shared_ptr<const Prior> runs,
                                               std::shared_ptr<const SpaceIndex> index,
                                               const SearchOptions& options);

  /// The expected standardised log time: about -2 for the best, 0 for the median.
  double Of(uint64_t at) const;
  /// The best configurations of the runs that are valid here, best first, no two of them
  /// neighbours. With a cost model the options' first configuration and the cheapest ones, no two
  /// of equal cost, take turns with them.
  const std::vector<uint64_t>& leaders() const { return leaders_; }
  bool knows_cost() const { return static_cast<bool>(cost_); }

 private:
  explicit Prior(std::shared_ptr<const SpaceIndex> index)
      : index_(std::move(index)), coordinates_(*index_) {}
  size_t Differences(uint64_t at, const std::vector<uint16_t>& there) const;
  bool NextToALeader(uint64_t at) const;
  /// Adds a valid configuration that is no neighbour of a leader, while there is room.
  void AddLeader(uint64_t at);
  void RankByCost(const SearchOptions& options);

  std::shared_ptr<const SpaceIndex> index_;
  Coordinates coordinates_;
  RegressionForest forest_;
  bool has_runs_ = false;
  std::vector<uint64_t> leaders_;
  std::function<std::optional<double>(const Configuration&)> cost_;
  ValueScale costs_;  ///< scale of the logarithms of the costs
};

}  // namespace atunner
