// Configurations as points of a vector space, for surrogate models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "atunner/search/space/space_index.h"

namespace atunner {

/// Numbers are mapped to [0, 1], on a logarithmic scale when all values are positive and span a
/// factor of four. Texts are one-hot. An order of items has a coordinate for each pair of items, so
/// that the squared distance is Kendall's tau, 1 for the reverse. Integers that are not all powers
/// of two have a second coordinate, the number of factors of two, because warps, banks and vector
/// accesses depend on it.
class Coordinates {
 public:
  explicit Coordinates(const SpaceIndex& index);

  size_t size() const { return group_.size(); }
  /// Per coordinate the parameter aspect it belongs to (all of a text's coordinates are one),
  /// numbered from 0.
  const std::vector<size_t>& groups() const { return group_; }
  std::vector<float> Of(uint64_t index) const;
  std::vector<float> OfPositions(std::span<const uint16_t> positions) const;

 private:
  const SpaceIndex* index_;
  /// Coordinates for each parameter and value; empty for parameters with one value.
  std::vector<std::vector<std::vector<float>>> table_;
  std::vector<size_t> group_;
};

double SquaredDistance(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace atunner
