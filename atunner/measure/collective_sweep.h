// Measures collectives of several GPUs over sizes and choices: the table that rules are made of.
//
// For each collective and size:
//   screen  each algorithm, protocol and number of channels gets a few samples; one that is clearly
//           slower than the best so far gets only one;
//   final   NCCL's own choice and the fastest contenders run in turns, in an order that rotates, so
//           that drift of clocks meets all alike.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/base/result.h"
#include "atunner/planning/comm/comm_table.h"

namespace atunner {

/// Runs collectives on all GPUs.
class CollectiveRunner {
 public:
  virtual ~CollectiveRunner() = default;
  /// Runs `count` equal collectives back to back. Microseconds of one of them on the slowest GPU;
  /// empty if NCCL cannot run this choice. No choice: NCCL's own.
  virtual Result<std::optional<double>> Run(planning::Collective collective, int64_t bytes,
                                            const std::optional<planning::CommChoice>& choice,
                                            int count) = 0;
};

struct CollectiveSweep {
  std::vector<planning::Collective> collectives = {planning::Collective::kAllReduce,
                                                   planning::Collective::kAllGather,
                                                   planning::Collective::kReduceScatter};
  int64_t smallest = 1024, largest = int64_t{256} << 20;  ///< bytes; sizes double
  /// NVLS (multicast) is not among them: the runner switches it off.
  std::vector<planning::Algorithm> algorithms = {planning::Algorithm::kTree,
                                                 planning::Algorithm::kRing};
  std::vector<int> channels = {-1, 1, 2, 4, 8, 16, 24, 32};
  int screen_samples = 3;
  int turns = 17;
  int contenders = 3;    ///< of the final turns, besides NCCL's own choice
  double seconds = 120;  ///< at most, divided among the sizes; sizes beyond it are left out
};

/// Progress of a sweep: what was measured last, and the share that is done.
using SweepProgress = std::function<void(const planning::CommRow& own, double done)>;

/// Appends rows to `table`, and a note if time ran out. kInvalidInput names the field of the sweep.
Status SweepCollectives(const CollectiveSweep& sweep, CollectiveRunner& runner, Clock& clock,
                        const SweepProgress& progress, planning::CommTable& table);

}  // namespace atunner
