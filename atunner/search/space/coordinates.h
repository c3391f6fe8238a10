// What a model of a space sees of a configuration: a point.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "atunner/search/space/space_index.h"

namespace atunner {

/// Numbers lie in [0, 1], on a logarithmic scale where the values are positive and span a factor of
/// four; texts are one-hot; an order of items says of each pair which comes first (a squared
/// distance of 1 is the reverse: Kendall's tau). Whole numbers that are not all powers of two have
/// a second coordinate: how often two divides them, since warps, banks and vector accesses care for
/// that rather than for the size.
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
  /// Per parameter and value its coordinates; empty where a parameter has one value.
  std::vector<std::vector<std::vector<float>>> table_;
  std::vector<size_t> group_;
};

double SquaredDistance(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace atunner
