#include "atunner/planning/memory/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "atunner/planning/memory/allocation_trace.h"
#include "atunner/planning/memory/pickle.h"

namespace atunner::planning {
namespace {

struct SnapshotEvent {
  std::string_view action;
  uint64_t address = 0;
  int64_t size = 0;
};

SnapshotEvent EventOf(const Pickle& pickle, Pickle::Index index) {
  return {pickle.Text(pickle.Find(index, "action")),
          static_cast<uint64_t>(pickle.Integer(pickle.Find(index, "addr"), 0)),
          pickle.Integer(pickle.Find(index, "size"), 0)};
}

/// Bytes that an event adds to what the allocator holds.
int64_t ReservedBy(const SnapshotEvent& event) {
  constexpr int64_t kMost = int64_t{1} << 45;
  const int64_t size = std::clamp<int64_t>(event.size, 0, kMost);
  if (event.action == "segment_alloc" || event.action == "segment_map") return size;
  if (event.action == "segment_free" || event.action == "segment_unmap") return -size;
  return 0;
}

/// Sum of a field of the device's segments, which say what there was at the end of the trace.
int64_t SumOfSegments(const Pickle& pickle, int64_t device, std::string_view field) {
  int64_t total = 0;
  for (const Pickle::Index segment : pickle.Items(pickle.Find(pickle.root(), "segments")))
    if (pickle.Integer(pickle.Find(segment, "device"), 0) == device)
      total += std::clamp<int64_t>(pickle.Integer(pickle.Find(segment, field), 0), 0,
                                   int64_t{1} << 45);
  return total;
}

size_t Longest(const Pickle& pickle, const std::vector<Pickle::Index>& traces) {
  size_t longest = 0;
  for (size_t i = 1; i < traces.size(); ++i)
    if (pickle.Items(&pickle[traces[i]]).size() > pickle.Items(&pickle[traces[longest]]).size())
      longest = i;
  return longest;
}

}  // namespace

Result<MemoryProblem> ReadSnapshot(std::string_view bytes, int device) {
  ATUNNER_TRY(const Pickle pickle, Pickle::Parse(bytes));
  const auto& traces = pickle.Items(pickle.Find(pickle.root(), "device_traces"));
  if (traces.empty())
    return Invalid("the pickle has no device_traces", "",
                   "call torch.cuda.memory._record_memory_history() before the step, then "
                   "torch.cuda.memory._dump_snapshot(FILE)");
  if (device >= static_cast<int>(traces.size()))
    return Invalid(fmt::format("the snapshot has {} devices", traces.size()), "request.device");
  const size_t chosen = device >= 0 ? static_cast<size_t>(device) : Longest(pickle, traces);
  const auto& events = pickle.Items(&pickle[traces[chosen]]);
  if (events.size() > bytes.size()) return Invalid("the pickle repeats events");
  int64_t reserved = SumOfSegments(pickle, static_cast<int64_t>(chosen), "total_size");
  for (const Pickle::Index event : events) reserved -= ReservedBy(EventOf(pickle, event));
  reserved = std::max<int64_t>(0, reserved);  // what was held before the first event
  AllocationTrace trace;
  trace.Reserved(reserved);
  for (const Pickle::Index index : events) {
    const SnapshotEvent event = EventOf(pickle, index);
    reserved += ReservedBy(event);
    if (event.action == "alloc") trace.Allocate(event.address, event.size);
    if (event.action == "free_completed" || event.action == "free")
      trace.Release(event.address, event.size);
    trace.Reserved(reserved);
  }
  return trace.Finish("PyTorch's caching allocator",
                      SumOfSegments(pickle, static_cast<int64_t>(chosen), "allocated_size"));
}

}  // namespace atunner::planning
