// One recorded run as columns: the form that every reader fills and every analysis reads.
//
// Example: a host thread that launches one kernel becomes two events
//
//     start  duration  name              track          kind      correlation
//      1000      5000  aten::mm          0 (thread 42)  operator            0
//      2000       800  cudaLaunchKernel  0 (thread 42)  cuda_call          17
//      9000     70000  sgemm_128x64      1 (stream 7)   kernel             17
//
// Times are nanoseconds. The correlation joins a call with the work that it submitted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/trace/timeline/string_table.h"

namespace atunner::trace {

enum class EventKind : uint8_t {
#define X(id, name, gpu) id,
#include "atunner/trace/timeline/event_kind.def"
#undef X
};

std::string_view Name(EventKind kind);
/// True for kernels, copies and everything else that a stream executes or shows.
bool IsOnGpu(EventKind kind);
/// True for what keeps a GPU busy: kernels, copies and memory sets.
inline bool IsWork(EventKind kind) { return kind <= EventKind::kMemset; }

/// A host thread or a stream of a GPU.
struct Track {
  bool gpu = false;
  int32_t device = -1;   ///< ordinal of the GPU; -1 for host threads
  int64_t id = 0;        ///< stream or thread number as the trace has it
  uint32_t process = 0;  ///< correlations are unique within a process
  std::string name;      ///< "" if the trace has none
  bool operator==(const Track&) const = default;
};

enum class MemorySpace : uint8_t { kPageable, kPinned, kDevice, kManaged, kUnknown };
std::string_view Name(MemorySpace space);

/// Details of a copy or memory set.
struct CopyDetail {
  int64_t bytes = 0;
  MemorySpace from = MemorySpace::kUnknown, to = MemorySpace::kUnknown;
  bool peer = false;  ///< between two GPUs
};

/// Details of a kernel; 0 = unknown.
struct KernelDetail {
  int64_t blocks = 0;
  int32_t threads = 0;  ///< of a block
  int32_t registers = 0;
  int32_t shared_bytes = 0;
  float occupancy = -1;          ///< as the profiler estimates it, 0 to 1; -1 = unknown
  uint32_t collective = 0;       ///< string id: "allreduce"; 0 = no collective
  uint32_t group = 0;            ///< string id: name of the process group
  int64_t message_elements = 0;  ///< of the collective's input
  uint32_t dtype = 0;            ///< string id: "Float"
};

/// An allocation (bytes > 0) or release (bytes < 0) that PyTorch's profiler recorded.
struct MemoryEvent {
  int64_t time = 0;  ///< nanoseconds
  uint64_t address = 0;
  int64_t bytes = 0;
  int32_t device = -1;          ///< -1: the host
  int64_t total_allocated = 0;  ///< after the event; 0 = unknown
  int64_t total_reserved = 0;
};

struct DeviceInfo {
  int32_t id = 0;
  std::string name;
  int64_t memory_bytes = 0;  ///< 0 = unknown
  int32_t multiprocessors = 0;
};

/// Columns have equal lengths. After Finish() events are ordered by start, longer ones first.
struct Timeline {
  std::string source;  ///< the file
  StringTable strings;
  std::vector<Track> tracks;
  std::vector<int64_t> start, duration;  ///< nanoseconds
  std::vector<uint32_t> name;            ///< string id
  std::vector<uint32_t> track;           ///< index in tracks
  std::vector<EventKind> kind;
  std::vector<uint32_t> correlation;  ///< 0 = none
  /// Kernels: index in kernels; copies: in copies; operators: string id of the input shapes. Each
  /// counts from 1; 0 = none.
  std::vector<uint32_t> detail;
  std::vector<KernelDetail> kernels;
  std::vector<CopyDetail> copies;
  std::vector<MemoryEvent> memory;
  std::vector<DeviceInfo> devices;
  int rank = -1;  ///< -1 = not distributed
  int world_size = 0;
  std::string backend;             ///< "nccl", "gloo", "" = unknown
  std::vector<std::string> notes;  ///< what was not read, and why

  size_t size() const { return start.size(); }
  int64_t End(size_t event) const { return start[event] + duration[event]; }
  std::string_view NameOf(size_t event) const { return strings[name[event]]; }
  const Track& TrackOf(size_t event) const { return tracks[track[event]]; }
  /// nullptr if the event has none.
  const KernelDetail* KernelOf(size_t event) const;
  const CopyDetail* CopyOf(size_t event) const;

  void Append(int64_t begin, int64_t length, uint32_t name_id, uint32_t track_index,
              EventKind event_kind, uint32_t correlation_id, uint32_t detail_index);
  /// Orders the events. Readers call it once.
  void Finish();
};

}  // namespace atunner::trace
