// Buffers from a snapshot of PyTorch's caching allocator.
#pragma once

#include <string_view>

#include "atunner/base/result.h"
#include "atunner/planning/memory/buffers.h"

namespace atunner::planning {

/// `bytes` is the file that torch.cuda.memory._dump_snapshot writes after _record_memory_history.
/// `device` -1 takes the device with most events.
Result<MemoryProblem> ReadSnapshot(std::string_view bytes, int device);

}  // namespace atunner::planning
