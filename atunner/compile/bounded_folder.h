// A folder of files that can be made again, kept below a size.
#pragma once

#include <cstdint>
#include <optional>

#include "atunner/base/files.h"

namespace atunner {

/// Removes the files that were not written (or renewed) for longest, until a fifth below
/// `most_bytes` is left; nothing where the folder is smaller. Several processes may do so at once,
/// and others read and write meanwhile: whoever misses a file makes it again.
void KeepBelow(const Path& folder, uint64_t most_bytes);
/// The same, but only if nobody looked for an hour: counting tens of thousands of files takes a
/// while.
void KeepBelowNowAndThen(const Path& folder, uint64_t most_bytes);
/// Counts as written now.
void Renew(const Path& file);

/// The limit of the cache of compiled kernels: $ATUNNER_CACHE_GB, 2 where it is not set or no
/// number.
uint64_t CacheLimitBytes();

}  // namespace atunner
