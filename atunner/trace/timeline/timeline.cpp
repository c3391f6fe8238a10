#include "atunner/trace/timeline/timeline.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

namespace atunner::trace {
namespace {

template <class T>
void Permute(std::vector<T>& column, const std::vector<uint32_t>& order) {
  std::vector<T> sorted(column.size());
  for (size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
  column = std::move(sorted);
}

}  // namespace

std::string_view Name(EventKind kind) {
  static constexpr std::string_view kNames[] = {
#define X(id, name, gpu) name,
#include "atunner/trace/timeline/event_kind.def"
#undef X
  };
  return kNames[static_cast<size_t>(kind)];
}

bool IsOnGpu(EventKind kind) {
  static constexpr bool kGpu[] = {
#define X(id, name, gpu) gpu,
#include "atunner/trace/timeline/event_kind.def"
#undef X
  };
  return kGpu[static_cast<size_t>(kind)];
}

std::string_view Name(MemorySpace space) {
  static constexpr std::string_view kNames[] = {"pageable", "pinned", "device", "managed",
                                                "unknown"};
  return kNames[static_cast<size_t>(space)];
}

const KernelDetail* Timeline::KernelOf(size_t event) const {
  return kind[event] == EventKind::kKernel && detail[event] > 0 ? &kernels[detail[event] - 1]
                                                                : nullptr;
}

const CopyDetail* Timeline::CopyOf(size_t event) const {
  const bool copy = kind[event] == EventKind::kMemcpy || kind[event] == EventKind::kMemset;
  return copy && detail[event] > 0 ? &copies[detail[event] - 1] : nullptr;
}

void Timeline::Append(int64_t begin, int64_t length, uint32_t name_id, uint32_t track_index,
                      EventKind event_kind, uint32_t correlation_id, uint32_t detail_index) {
  start.push_back(begin);
  duration.push_back(length);
  name.push_back(name_id);
  track.push_back(track_index);
  kind.push_back(event_kind);
  correlation.push_back(correlation_id);
  detail.push_back(detail_index);
}

void Timeline::Finish() {
  std::ranges::stable_sort(memory, {}, &MemoryEvent::time);
  const auto before = [&](uint32_t a, uint32_t b) {
    return start[a] != start[b] ? start[a] < start[b] : duration[a] > duration[b];
  };
  std::vector<uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0u);
  if (std::ranges::is_sorted(order, before)) return;
  std::ranges::stable_sort(order, before);
  Permute(start, order);
  Permute(duration, order);
  Permute(name, order);
  Permute(track, order);
  Permute(kind, order);
  Permute(correlation, order);
  Permute(detail, order);
}

}  // namespace atunner::trace
