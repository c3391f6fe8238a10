// Plans memory: placement, lower bound, and what fragmentation cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/planning/memory/buffers.h"

namespace atunner::planning {

struct MemoryPlanRequest {
  Path file;
  int device = -1;       ///< GPU of traces and snapshots; -1 = the one with most allocations
  int64_t capacity = 0;  ///< bytes; 0 = none: the search goes on to the lower bound
  double seconds = 10;   ///< of search, at most
  uint64_t seed = 1;
};

struct MemoryPlan {
  MemoryProblem problem;
  Placement placement;
  int64_t bound = 0;        ///< largest sum of live sizes
  int64_t greedy_peak = 0;  ///< of the best order alone, before the search
  std::string found_by;     ///< "order by size", "skyline search"
  double seconds = 0;       ///< until the best placement was found
  bool optimal() const { return placement.peak == bound; }
  /// bound / peak; 1 for an empty problem.
  double Utilization() const;
};

/// Reads the file and plans it. Errors name fields of the request, or the file and its line.
Result<MemoryPlan> PlanMemory(const MemoryPlanRequest& request);

/// Plans buffers that passed CheckBuffers. `goal` is the peak at which the search ends.
MemoryPlan PlanBuffers(MemoryProblem problem, int64_t goal, double seconds, uint64_t seed);

/// "id,begin,end,size,offset", a line for each buffer.
std::string PlacementCsv(const MemoryPlan& plan);

/// What fragmentation cost, in sentences.
std::vector<std::string> Explain(const MemoryPlan& plan);

Json ToJson(const MemoryPlan& plan);

}  // namespace atunner::planning
