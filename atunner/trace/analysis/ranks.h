// Ranks of one job compared: who is late, and how unevenly the work is spread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/trace/analysis/analysis.h"
#include "atunner/trace/analysis/event_index.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// A collective as one rank saw it: its kernel runs from the rank's arrival until all have arrived
/// and the data is exchanged.
struct Collective {
  uint32_t name = 0;   ///< string id of the kernel
  uint32_t group = 0;  ///< string id; 0 = unknown
  int64_t duration = 0;
};

/// Times in nanoseconds, sums over the trace's window.
struct RankRow {
  int rank = 0;
  std::string source;
  int64_t window = 0;
  int64_t compute = 0;
  int64_t communication = 0;
  int64_t exposed_communication = 0;
  int64_t idle = 0;
  uint64_t last_arrivals = 0;  ///< collectives for which the others waited for this rank
  int64_t caused_wait = 0;     ///< that the slowest other rank waited for this one
};

struct RankComparison {
  std::vector<RankRow> ranks;  ///< in the order of their numbers
  uint64_t collectives = 0;    ///< that were compared
  std::vector<std::string> notes;
  /// Index of the rank that the others waited for longest; -1 if none stands out: a straggler comes
  /// last at more than half of the collectives and costs at least 2 % of the window.
  int straggler = -1;
  /// Longest over mean computing time; 1 = even.
  double Imbalance() const;
};

/// The collectives of a trace in the order of their starts.
std::vector<Collective> CollectivesOf(const Timeline& timeline);

struct RankInput {
  const Analysis* analysis = nullptr;
  std::vector<Collective> collectives;
};

/// Clocks of hosts differ, so starts are not compared: the n-th collective ends on all ranks at
/// about the same time, hence the rank with the shortest kernel arrived last, and the difference to
/// the longest one is what it made the others wait.
RankComparison CompareRanks(const std::vector<RankInput>& ranks);

}  // namespace atunner::trace
