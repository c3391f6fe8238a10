// Reads buffers from files of any kind that atunner knows.
#pragma once

#include <string_view>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/planning/memory/buffers.h"

namespace atunner::planning {

/// CSV with a header that names id, lower (or start, begin), upper (or end) and size. Further
/// columns are ignored. Errors name the line.
Result<MemoryProblem> ReadBufferCsv(std::string_view text);

/// A list, or an object with a list "buffers", of objects with the same keys.
Result<MemoryProblem> ReadBufferJson(std::string_view text);

/// CSV, JSON, a snapshot of PyTorch's allocator, or a trace of PyTorch's profiler with memory
/// events; the contents decide. `device` is a GPU of the last two; -1 takes the one with most
/// events.
Result<MemoryProblem> ReadBuffers(const Path& file, int device);

}  // namespace atunner::planning
