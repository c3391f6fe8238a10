// Placement in one pass: buffers in some order, each at the lowest address that is free during its
// whole lifetime.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/planning/memory/buffers.h"

namespace atunner::planning {

/// How the place of a buffer is chosen among the gaps that are large enough.
enum class Fit : uint8_t {
  kFirst,  ///< the lowest
  kBest,   ///< the smallest
};

/// `order` holds each index once. Takes time in the square of the number of buffers at worst.
Placement PlaceInOrder(const std::vector<Buffer>& buffers, const std::vector<uint32_t>& order,
                       Fit fit);

/// Orders that often work: by size, lifetime, area, begin, and sums of neighbours, largest first.
std::vector<std::vector<uint32_t>> GreedyOrders(const std::vector<Buffer>& buffers);

}  // namespace atunner::planning
