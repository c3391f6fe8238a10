#include "atunner/trace/analysis/memory_use.h"

#include <algorithm>
#include <map>

namespace atunner::trace {

std::vector<MemoryUse> MemoryUseOf(const Timeline& timeline) {
  std::map<int32_t, MemoryUse> uses;
  for (const MemoryEvent& event : timeline.memory) {
    if (event.device < 0) continue;
    MemoryUse& use = uses[event.device];
    use.device = event.device;
    use.allocations += event.bytes > 0 ? 1 : 0;
    use.peak_allocated = std::max(use.peak_allocated, event.total_allocated);
    use.peak_reserved = std::max(use.peak_reserved, event.total_reserved);
  }
  std::vector<MemoryUse> list;
  for (auto& [device, use] : uses) {
    for (const DeviceInfo& info : timeline.devices)
      if (info.id == device) use.capacity = info.memory_bytes;
    list.push_back(use);
  }
  return list;
}

}  // namespace atunner::trace
