// Events laid out in rows, as the page draws them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "atunner/trace/analysis/analysis.h"

namespace atunner::trace {

/// Rows of one stream or thread: half-open ranges of the columns of PageRows.
struct PageTrack {
  std::string name;
  std::vector<std::pair<size_t, size_t>> rows;
};

/// Columns of all rows. Inside a row events are ordered and do not overlap.
struct PageRows {
  int64_t origin = 0, length = 0;  ///< nanoseconds
  std::vector<double> start;       ///< nanoseconds after the origin
  std::vector<float> duration;
  std::vector<uint32_t> name;  ///< index in names
  std::vector<std::string> names;
  std::vector<uint8_t> colors;  ///< of names: index in Palette()
  std::vector<PageTrack> tracks;
};

/// Colour and meaning.
std::span<const std::pair<const char*, const char*>> Palette();

/// Streams come before threads.
PageRows LayOut(std::span<const Analysis> analyses);

}  // namespace atunner::trace
