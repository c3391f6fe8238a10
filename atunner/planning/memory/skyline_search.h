// Exact search for a placement within a capacity.
//
// Time is cut where a buffer begins or ends. The placed buffers form a skyline: a floor for each
// section of time. A valley is a run of sections with one floor between higher ones:
//
//     ████                ████
//     ████        ████    ████     valleys at sections 1-2 and 4; the second one is lower
//     ████········████    ████
//     ████████████████····████
//       0   1   2   3   4   5
//
// In some solution every buffer lies on another one or on the ground. So the leftmost section of
// any valley gets a buffer that begins there and ends inside the valley, or stays empty up to the
// next height at which something could lie. The same holds for the rightmost section. The search
// takes the valley and side with the fewest choices; a section whose remaining buffers no longer
// fit below the capacity ends a branch, and so does a skyline that was seen before.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "atunner/planning/memory/buffers.h"

namespace atunner::planning {

/// Asked now and then; true ends the search.
using StopFunction = std::function<bool()>;

enum class SearchEnd : uint8_t {
  kFound,
  kImpossible,  ///< proven: no placement has this capacity
  kStopped,
};

struct SkylineResult {
  SearchEnd end = SearchEnd::kStopped;
  std::vector<int64_t> offsets;  ///< if found
  uint64_t nodes = 0;            ///< skylines that were looked at
};

/// Restarts with other orders of choices after 4096 nodes, later after more; skylines that lead
/// nowhere stay known. Equal seeds give equal searches unless `stop` ends them.
SkylineResult SearchCapacity(const std::vector<Buffer>& buffers, int64_t capacity,
                             uint64_t node_limit, uint64_t seed, const StopFunction& stop);

}  // namespace atunner::planning
