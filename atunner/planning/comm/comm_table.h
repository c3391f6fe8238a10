// Measured times of collectives: the table that `comm tune` writes and chooses from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/planning/comm/collective.h"

namespace atunner::planning {

/// When a row was measured.
enum class CommStage : uint8_t {
  kScreen,  ///< every choice, few samples: who is worth more of them
  /// Contenders and NCCL's own choice in turns: sample i of all rows of one size was taken in the
  /// same turn, so that they can be compared in pairs
  kFinal,
};

/// Times of one collective, size and choice.
struct CommRow {
  Collective collective = Collective::kAllReduce;
  int64_t bytes = 0;                 ///< of the larger buffer
  std::optional<CommChoice> choice;  ///< empty: NCCL's own
  CommStage stage = CommStage::kScreen;
  std::vector<double> us;  ///< samples, microseconds of one collective on the slowest GPU
};

struct CommTable {
  std::string device;  ///< "NVIDIA H100 80GB HBM3"
  std::string nccl;    ///< "2.28.9"
  int gpus = 0;        ///< of one node
  std::vector<CommRow> rows;
  std::vector<std::string> notes;
};

Json ToJson(const CommTable& table);
/// kInvalidInput names the row and what is wrong with it.
Result<CommTable> ReadCommTable(std::string_view json);

/// The median of the samples; 0 without any.
double MedianUs(const CommRow& row);

}  // namespace atunner::planning
