#include "atunner/trace/analysis/event_index.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace atunner::trace {
namespace {

uint64_t LinkKey(const Timeline& timeline, uint32_t event) {
  return uint64_t{timeline.TrackOf(event).process} << 32 | timeline.correlation[event];
}

}  // namespace

EventIndex::EventIndex(const Timeline& timeline)
    : timeline_(timeline),
      activities_(HostActivities(timeline)),
      call_of_(timeline.size(), kNoEvent),
      parent_(timeline.size(), kNoEvent),
      self_(timeline.duration) {
  Sort();
  Classify();
  Link();
  for (const auto& [track, events] : threads_) Nest(events);
}

void EventIndex::Sort() {
  span_ = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (uint32_t event = 0; event < timeline_.size(); ++event) {
    span_.begin = std::min(span_.begin, timeline_.start[event]);
    span_.end = std::max(span_.end, timeline_.End(event));
    const EventKind kind = timeline_.kind[event];
    if (IsWork(kind))
      work_[timeline_.TrackOf(event).device].push_back(event);
    else if (!IsOnGpu(kind) && kind != EventKind::kOverhead)
      threads_[timeline_.track[event]].push_back(event);
  }
  if (timeline_.size() == 0) span_ = {};
}

void EventIndex::Classify() {
  std::vector<bool> known(timeline_.strings.size(), false);
  classes_.assign(timeline_.strings.size(), KernelClass::kOther);
  for (size_t event = 0; event < timeline_.size(); ++event) {
    const uint32_t name = timeline_.name[event];
    if (timeline_.kind[event] != EventKind::kKernel || known[name]) continue;
    known[name] = true;
    classes_[name] = ClassOfKernel(timeline_.strings[name]);
  }
}

KernelClass EventIndex::ClassOf(uint32_t event) const {
  return timeline_.kind[event] == EventKind::kKernel ? classes_[timeline_.name[event]]
                                                     : KernelClass::kOther;
}

bool EventIndex::IsCommunication(uint32_t event) const {
  const KernelDetail* detail = timeline_.KernelOf(event);
  return ClassOf(event) == KernelClass::kCommunication ||
         (detail != nullptr && detail->collective != 0);
}

void EventIndex::Link() {
  std::unordered_map<uint64_t, uint32_t> calls;
  for (uint32_t event = 0; event < timeline_.size(); ++event)
    if (timeline_.kind[event] == EventKind::kCall && timeline_.correlation[event] != 0)
      calls.try_emplace(LinkKey(timeline_, event), event);
  std::vector<uint32_t>& begin = submitted_begin_;
  begin.assign(timeline_.size() + 1, 0);
  for (const auto& [device, events] : work_) {
    for (const uint32_t event : events) {
      if (timeline_.correlation[event] == 0) continue;
      const auto call = calls.find(LinkKey(timeline_, event));
      if (call == calls.end()) continue;
      call_of_[event] = call->second;
      ++begin[call->second + 1];
    }
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  submitted_.resize(begin.back());
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  for (const auto& [device, events] : work_)
    for (const uint32_t event : events)
      if (call_of_[event] != kNoEvent) submitted_[next[call_of_[event]]++] = event;
}

std::span<const uint32_t> EventIndex::WorkOf(uint32_t call) const {
  return std::span(submitted_)
      .subspan(submitted_begin_[call], submitted_begin_[call + 1] - submitted_begin_[call]);
}

void EventIndex::Nest(const std::vector<uint32_t>& thread) {
  std::vector<uint32_t> open;
  for (const uint32_t event : thread) {
    while (!open.empty() && timeline_.End(open.back()) <= timeline_.start[event]) open.pop_back();
    // Ranges of NVTX may overlap without nesting: such a one is inside of none that ends earlier.
    while (!open.empty() && timeline_.End(open.back()) < timeline_.End(event)) open.pop_back();
    if (!open.empty()) {
      parent_[event] = open.back();
      self_[open.back()] -= timeline_.duration[event];
    }
    open.push_back(event);
  }
}

}  // namespace atunner::trace
