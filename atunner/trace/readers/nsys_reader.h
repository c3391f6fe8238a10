// Reads the SQLite files that `nsys export --type sqlite` writes.
#pragma once

#include <string>

#include "atunner/base/result.h"
#include "atunner/trace/readers/sqlite_table.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// nsys makes a table only if there is a row for it, and newer versions add columns: both are
/// read as far as they are there. kInvalidInput if no table with events is.
Result<Timeline> ReadNsys(const SqliteFile& file, const std::string& where);

}  // namespace atunner::trace
