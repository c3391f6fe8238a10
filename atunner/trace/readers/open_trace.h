// Opens a trace of any kind that atunner reads.
#pragma once

#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// One file: Kineto JSON, plain or packed by gzip, or an nsys SQLite export. The contents decide.
Result<Timeline> OpenTrace(const Path& file);

/// The traces of a folder (*.json, *.json.gz, *.sqlite), in the order of their ranks and else of
/// their names. kNotFound if there is none.
Result<std::vector<Path>> TracesOfFolder(const Path& folder);

}  // namespace atunner::trace
