// An exhaustively measured parameter space: what a device would answer, looked up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/search/space/space_index.h"

namespace atunner {

struct RecordedSpace {
  std::string name;
  std::string device;
  std::shared_ptr<const SpaceIndex> index;     ///< the recorded configurations are the valid ones
  std::vector<std::optional<double>> time_ms;  ///< by index; nullopt: it failed
  /// By index: compiling, checking and timing it, as recorded
  std::vector<double> spent_ms;
  uint64_t ok = 0;  ///< how many did not fail
};

/// The text of a Kernel Tuner cache file (`tune_params`, `cache`), also one that was left open by
/// an interrupted run. kInvalidInput says what is missing; configurations with values outside
/// `tune_params` are an error, repeated ones count once.
Result<RecordedSpace> ParseRecordedSpace(std::string_view text, std::string name);
/// Also packed by gzip. The name is the file's without `.json` and `.gz`.
Result<RecordedSpace> ReadRecordedSpace(const Path& path);
/// Every recorded space of a folder, by name; `index.json` is passed over.
/// kNotFound when there is none.
Result<std::vector<RecordedSpace>> ReadRecordedSpaces(const Path& folder);

}  // namespace atunner
