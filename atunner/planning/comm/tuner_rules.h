// Rules files of NCCL's example tuner plugin: which algorithm, protocol and channels a collective
// takes by its size. A line is a rule; the first one that matches holds:
//
//     collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps
//     [,regBuff]]
//     allreduce,0,65536,ring,ll128,4,1,2
//
// -1 means any (nodes, ranks, operations, buffers) or NCCL's own number (channels).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/planning/comm/collective.h"

namespace atunner::planning {

/// A call of NCCL, as its tuner interface describes it.
struct CommCall {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  ///< of the larger buffer: nRanks times the shard for gather and scatter
  int nodes = 1, ranks = 2;
  int pipe_ops = 1;    ///< collectives that are launched together
  int registered = 0;  ///< 1: the buffers are registered with NCCL
};

struct TunerRule {
  Collective collective = Collective::kAllReduce;
  uint64_t min_bytes = 0, max_bytes = 0;  ///< both inclusive
  CommChoice choice;
  int nodes = -1, ranks = -1, pipe_ops = -1, registered = -1;
  bool operator==(const TunerRule&) const = default;
  bool Matches(const CommCall& call) const;
};

/// Lines that begin with # and empty ones are comments. kInvalidInput names the first wrong line.
Result<std::vector<TunerRule>> ReadTunerRules(std::string_view text);

/// The text of a rules file, with its comment of columns.
std::string TunerRulesText(const std::vector<TunerRule>& rules);

/// The first rule that matches, or nullptr.
const TunerRule* FindTunerRule(const std::vector<TunerRule>& rules, const CommCall& call);

}  // namespace atunner::planning
