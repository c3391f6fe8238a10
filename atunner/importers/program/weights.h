// Where a model's weights are. atunner tunes with drawn values, so weights are found and checked,
// never read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/importers/program/exported_program.h"

namespace atunner::importers {

/// The bytes of one tensor: part of a file, or of an entry of an archive.
struct WeightPlace {
  /// "data/weights/weight_0", from the archive's or folder's root. Empty: the model's file itself.
  std::string file;
  uint64_t file_offset = 0;    ///< where the file begins in the archive; 0 in a folder
  int64_t storage_offset = 0;  ///< in elements from the file's beginning
  std::vector<int64_t> strides;
};
/// By qualified name: "layers.0.weight".
using Weights = std::map<std::string, WeightPlace, std::less<>>;

/// Size and offset of a file by its name from the root; nullopt if there is none.
struct FileExtent {
  uint64_t offset = 0;
  uint64_t size = 0;
};
using FindFile = std::function<std::optional<FileExtent>(const std::string& name)>;

/// Adds what a `…_weights_config.json` or `…_constants_config.json` lists. Its files are in
/// `folder`. kInvalidInput for tensors that their file does not hold; kUnsupported for tensors in
/// pickles.
Status ReadWeightsConfig(std::string_view text, const std::string& where, const std::string& folder,
                         const FindFile& find, Weights& weights);

}  // namespace atunner::importers
