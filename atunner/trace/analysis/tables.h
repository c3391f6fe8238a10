// Kernels, operators, copies, calls and collectives by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "atunner/trace/analysis/event_index.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// All kernels of one name inside the window. Times in nanoseconds. `total` adds durations, and so
/// may exceed the time that passed when kernels overlap.
struct KernelRow {
  uint32_t name = 0;
  KernelClass kernel_class = KernelClass::kOther;
  uint64_t count = 0;
  int64_t total = 0, shortest = 0, longest = 0, median = 0;
  double share = 0;              ///< of the total of all kernels
  bool tensor_cores = false;     ///< by its name
  uint32_t operator_name = 0;    ///< the operator that launched most of it; 0 = unknown
  uint32_t operator_shapes = 0;  ///< string id of its input shapes; 0 = unknown
  KernelDetail detail;           ///< of the longest one
  int64_t Mean() const { return count == 0 ? 0 : total / static_cast<int64_t>(count); }
};

/// All calls of one operator inside the window. Times in nanoseconds.
struct OperatorRow {
  uint32_t name = 0;
  uint64_t count = 0;
  int64_t host_total = 0;    ///< on the host, with what it calls
  int64_t host_self = 0;     ///< without what it calls
  int64_t device_total = 0;  ///< work submitted inside it
  int64_t device_self = 0;   ///< work submitted by it, not by an operator inside it
  uint64_t launches = 0;     ///< pieces of work submitted inside it
};

/// Copies and memory sets by direction and kinds of memory.
struct CopyRow {
  std::string name;  ///< "Memcpy HtoD (pageable -> device)"
  MemorySpace from = MemorySpace::kUnknown, to = MemorySpace::kUnknown;
  bool set = false;   ///< a memory set
  bool peer = false;  ///< between two GPUs
  uint64_t count = 0;
  int64_t bytes = 0;
  int64_t total = 0;  ///< nanoseconds
};

/// Calls of CUDA's runtime and driver by name.
struct CallRow {
  uint32_t name = 0;
  HostActivity activity = HostActivity::kOther;
  uint64_t count = 0;
  int64_t total = 0;  ///< nanoseconds
};

struct Tables {
  std::vector<KernelRow> kernels;      ///< most time first
  std::vector<OperatorRow> operators;  ///< most device time, then host time, first
  std::vector<CopyRow> copies;         ///< most time first
  std::vector<CallRow> calls;          ///< most time first
  uint64_t graph_launches = 0;
  uint64_t graph_work = 0;  ///< pieces of work that graphs submitted
  uint64_t unlinked = 0;    ///< pieces of work without the call that submitted them
};

/// Events that start in the window.
Tables TablesOf(const EventIndex& index, Interval window);

}  // namespace atunner::trace
