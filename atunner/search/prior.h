// What earlier runs of the same kernel (at other sizes, on other GPUs) say of a space.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "atunner/search/coordinates.h"
#include "atunner/search/regression_forest.h"
#include "atunner/search/searcher.h"

namespace atunner {

/// An earlier run: configurations of a space of its own.
struct PastRun {
  ParameterSpace space;
  std::vector<Observation> trials;
};

/// Of each run only the order and the relative distances count, so that sizes and GPUs of any speed may mix.
class Prior {
 public:
  /// Every run must have the parameters of `index` by name, in any order; numbers that it does not list count as the
  /// nearest that it does. nullptr when nothing usable is left.
  static std::shared_ptr<const Prior> Make(std::shared_ptr<const SpaceIndex> index, std::span<const PastRun> runs,
                                           uint64_t seed);

  /// What the runs expect: standardised log time, about -2 for their best, 0 for the middle.
  double Of(uint64_t at) const { return forest_.Predict(coordinates_.Of(at)).mean; }
  /// The runs' best configurations as far as they are valid here, best first, no two next to each other.
  const std::vector<uint64_t>& leaders() const { return leaders_; }

 private:
  explicit Prior(std::shared_ptr<const SpaceIndex> index) : index_(std::move(index)), coordinates_(*index_) {}

  std::shared_ptr<const SpaceIndex> index_;
  Coordinates coordinates_;
  RegressionForest forest_;
  std::vector<uint64_t> leaders_;
};

}  // namespace atunner
