// A folder of files that can be made again (a cache), kept below a size limit.
#pragma once

#include <cstdint>
#include <optional>

#include "atunner/base/files.h"

namespace atunner {

/// If the folder is larger than `most_bytes`, removes the least recently written (or renewed) files
/// until it is a fifth below the limit. Other processes may do the same, read and write at the same
/// time: a missing file is made again.
void KeepBelow(const Path& folder, uint64_t most_bytes);
/// KeepBelow at most once an hour per folder, since counting tens of thousands of files takes a
/// while.
void KeepBelowNowAndThen(const Path& folder, uint64_t most_bytes);
/// Marks a file as written now, so that it is evicted late.
void Renew(const Path& file);

/// Limit of the cache of compiled kernels: $ATUNNER_CACHE_GB; 2 GB if it is not set or not a
/// number.
uint64_t CacheLimitBytes();

}  // namespace atunner
