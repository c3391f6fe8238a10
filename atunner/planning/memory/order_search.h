// Improves a placement by changing the order in which buffers are placed.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/planning/memory/buffers.h"
#include "atunner/planning/memory/skyline_search.h"

namespace atunner::planning {

/// Moves buffers that reach the peak to the front of the order, keeps what does not raise the peak,
/// and ends when `stop` says so, after `rounds`, or at `bound`.
Placement ImproveOrder(const std::vector<Buffer>& buffers, std::vector<uint32_t> order,
                       int64_t bound, uint64_t rounds, uint64_t seed, const StopFunction& stop);

}  // namespace atunner::planning
