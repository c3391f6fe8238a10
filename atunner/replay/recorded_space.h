// A parameter space whose configurations were all measured before. A search strategy runs on the
// record as on a device.
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
  std::shared_ptr<const SpaceIndex> index;     ///< its valid configurations are the recorded ones
  std::vector<std::optional<double>> time_ms;  ///< by index; nullopt if the configuration failed
  /// By index: the recorded time of compiling, checking and timing the configuration.
  std::vector<double> spent_ms;
  uint64_t ok = 0;  ///< number of configurations that did not fail
};

/// Reads the text of a Kernel Tuner cache file (`tune_params`, `cache`), also one that an
/// interrupted run did not close. Repeated configurations count once. kInvalidInput if a member is
/// missing or a configuration has a value that `tune_params` does not list.
Result<RecordedSpace> ParseRecordedSpace(std::string_view text, std::string name);
/// Reads a cache file, plain or packed by gzip. The space gets the name of the file without `.json`
/// and `.gz`.
Result<RecordedSpace> ReadRecordedSpace(const Path& path);
/// Reads every recorded space of a folder except `index.json`, in the order of their names.
/// kNotFound if there is none.
Result<std::vector<RecordedSpace>> ReadRecordedSpaces(const Path& folder);

}  // namespace atunner
