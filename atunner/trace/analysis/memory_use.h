// Memory of the GPUs over time, as PyTorch's profiler records it.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// Bytes of one device.
struct MemoryUse {
  int32_t device = 0;
  uint64_t allocations = 0;
  int64_t peak_allocated = 0;
  int64_t peak_reserved = 0;  ///< 0 = unknown
  int64_t capacity = 0;       ///< of the device; 0 = unknown
};

std::vector<MemoryUse> MemoryUseOf(const Timeline& timeline);

}  // namespace atunner::trace
