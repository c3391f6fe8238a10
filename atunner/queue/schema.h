// The tables of the embedded queue.
#pragma once

#include "atunner/base/files.h"
#include "atunner/base/result.h"

struct sqlite3;

namespace atunner::queue {

/// The error of the last call on `handle`.
std::unexpected<Error> QueueFailure(sqlite3* handle, const Path& file, std::string_view action);

/// Makes the tables of an empty file. kInvalidInput for a file of another program or version.
Status PrepareQueueSchema(sqlite3* handle, const Path& file);

}  // namespace atunner::queue
