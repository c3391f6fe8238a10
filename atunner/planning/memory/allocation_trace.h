// Lifetimes from a sequence of allocations and releases.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "atunner/planning/memory/buffers.h"

namespace atunner::planning {

/// Times are the numbers of the events. Blocks that were allocated before the first event live from
/// its begin, and those never released up to its end.
class AllocationTrace {
 public:
  void Allocate(uint64_t address, int64_t bytes);
  /// `bytes` is used if the allocation lies before the trace.
  void Release(uint64_t address, int64_t bytes);
  /// What the allocator holds now.
  void Reserved(int64_t bytes);

  /// The problem. `allocator` names who reserved. `in_use` are the bytes in use at the end, if
  /// known: what exceeds the blocks of the trace was allocated before it and stays, as one more
  /// buffer.
  MemoryProblem Finish(const std::string& allocator, int64_t in_use = 0);

 private:
  void Close(const Buffer& buffer);

  int64_t time_ = 0;
  int64_t live_ = 0, early_ = 0;  ///< bytes; early_: allocated before the trace and released in it
  std::unordered_map<uint64_t, Buffer> open_;
  MemoryProblem problem_;
  int64_t reserved_ = 0, live_at_reserved_ = 0, early_at_reserved_ = 0;
};

}  // namespace atunner::planning
