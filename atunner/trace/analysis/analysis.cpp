#include "atunner/trace/analysis/analysis.h"

#include <algorithm>
#include <utility>

#include "atunner/trace/analysis/event_index.h"

namespace atunner::trace {
namespace {

/// From the first iteration's begin to the last one's end. Work that the last iteration left on the
/// GPU belongs to it.
Interval WindowOf(const EventIndex& index, const Iterations& iterations) {
  if (iterations.at.empty()) return index.span();
  Interval window = iterations.at.front();
  for (const Interval& one : iterations.at) {
    window.begin = std::min(window.begin, one.begin);
    window.end = std::max(window.end, one.end);
  }
  // Kernels that repeat begin with the launch of the first one.
  const bool repeated = iterations.found_by.starts_with("repetition");
  const Interval found = window;
  for (const auto& [device, events] : index.work()) {
    for (const uint32_t event : events) {
      const uint32_t call = index.CallOf(event);
      if (call == kNoEvent) continue;
      const int64_t launched = index.timeline().start[call];
      const int64_t started = index.timeline().start[event];
      if (launched >= found.begin && launched < found.end)
        window.end = std::max(window.end, index.timeline().End(event));
      if (repeated && started >= found.begin && started < found.end)
        window.begin = std::min(window.begin, launched);
    }
  }
  return window;
}

int64_t OverheadOf(const Timeline& timeline, Interval window) {
  std::vector<Interval> overhead;
  for (size_t event = 0; event < timeline.size(); ++event)
    if (timeline.kind[event] == EventKind::kOverhead)
      overhead.push_back({timeline.start[event], timeline.End(event)});
  return Length(Clip(Union(std::move(overhead)), window));
}

}  // namespace

DeviceTime Analysis::Total() const {
  DeviceTime total{.device = -1};
  for (const DeviceTime& one : times.devices) {
    total.window += one.window;
    total.busy += one.busy;
    total.compute += one.compute;
    total.communication += one.communication;
    total.copies += one.copies;
    total.exposed_communication += one.exposed_communication;
    total.exposed_copies += one.exposed_copies;
    for (size_t cause = 0; cause < kIdleCauses; ++cause) total.idle[cause] += one.idle[cause];
  }
  return total;
}

Analysis Analyze(const Timeline& timeline) {
  const EventIndex index(timeline);
  Analysis analysis;
  analysis.timeline = &timeline;
  analysis.iterations = FindIterations(index);
  analysis.window = WindowOf(index, analysis.iterations);
  analysis.times = DeviceTimesOf(index, analysis.window);
  analysis.tables = TablesOf(index, analysis.window);
  analysis.path = FindCriticalPath(index, analysis.window);
  analysis.memory = MemoryUseOf(timeline);
  analysis.overhead = OverheadOf(timeline, analysis.window);
  return analysis;
}

}  // namespace atunner::trace
