#include "atunner/trace/analysis/critical_path.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace atunner::trace {
namespace {

class Walk {
 public:
  Walk(const EventIndex& index, Interval window)
      : index_(index), timeline_(index.timeline()), window_(window), at_(window.end) {
    for (const auto& [device, events] : index.work()) by_end_[device] = ByEnd(events);
    for (const auto& [track, events] : index.threads()) {
      std::vector<uint32_t>& waits = waits_[track];
      for (const uint32_t event : events)
        if (index.ActivityOf(event) == HostActivity::kSynchronize ||
            index.ActivityOf(event) == HostActivity::kBlockingCopy)
          waits.push_back(event);
      std::ranges::stable_sort(waits, {}, [this](uint32_t event) { return timeline_.End(event); });
    }
  }

  std::vector<PathSegment> Run() {
    uint32_t work = LastWork(window_.end);
    if (work == kNoEvent || !StartsOnGpu(work)) work = FromHost(MainThread());
    while (at_ > window_.begin && work != kNoEvent) {
      Take(work, PathPart::kGpu, timeline_.start[work]);
      if (at_ <= window_.begin) break;
      work = Before(work);
    }
    if (at_ > window_.begin) Emit(window_.begin, PathPart::kHost, kNoEvent);
    std::ranges::reverse(segments_);
    return std::move(segments_);
  }

 private:
  std::vector<uint32_t> ByEnd(std::vector<uint32_t> events) const {
    std::ranges::stable_sort(events, {}, [this](uint32_t event) { return timeline_.End(event); });
    return events;
  }

  /// The event of an order by end that ends last at or before `time`.
  uint32_t LastEnding(const std::vector<uint32_t>& events, int64_t time) const {
    const auto after = std::ranges::upper_bound(
        events, time, {}, [this](uint32_t event) { return timeline_.End(event); });
    return after == events.begin() ? kNoEvent : *std::prev(after);
  }

  uint32_t LastWork(int64_t time) const {
    uint32_t last = kNoEvent;
    for (const auto& [device, events] : by_end_) {
      const uint32_t event = LastEnding(events, time);
      if (event != kNoEvent && (last == kNoEvent || timeline_.End(event) > timeline_.End(last)))
        last = event;
    }
    return last;
  }

  /// True if the run ends with this work, and not with host code after it.
  bool StartsOnGpu(uint32_t work) {
    for (const auto& [track, events] : index_.threads())
      for (const uint32_t event : events)
        if (timeline_.End(event) > timeline_.End(work) && timeline_.End(event) <= window_.end)
          return false;
    Emit(std::max(window_.begin, timeline_.End(work)), PathPart::kHost, kNoEvent);
    return true;
  }

  uint32_t MainThread() const {
    uint32_t main = kNoEvent;
    size_t most = 0;
    for (const auto& [track, events] : index_.threads()) {
      if (main != kNoEvent && events.size() <= most) continue;
      main = track;
      most = events.size();
    }
    return main;
  }

  void Emit(int64_t begin, PathPart part, uint32_t event) {
    begin = std::clamp(begin, window_.begin, at_);
    if (begin < at_) segments_.push_back({{begin, at_}, part, event});
    at_ = begin;
  }
  void Take(uint32_t event, PathPart part, int64_t begin) {
    Emit(std::max(window_.begin, std::min(begin, at_)), part, event);
  }

  /// What the work depends on; host code in between is taken.
  uint32_t Before(uint32_t work) {
    const int64_t start = timeline_.start[work];
    const uint32_t call = index_.CallOf(work);
    uint32_t earlier = LastEnding(by_end_.at(timeline_.TrackOf(work).device), start);
    // Work of no length could stand before itself.
    if (earlier != kNoEvent && timeline_.start[earlier] >= start) earlier = kNoEvent;
    const int64_t submitted = call == kNoEvent ? window_.begin : timeline_.start[call];
    if (earlier != kNoEvent && (call == kNoEvent || timeline_.End(earlier) >= submitted)) {
      Emit(timeline_.End(earlier), PathPart::kWaiting, work);
      return earlier;
    }
    if (call == kNoEvent) return kNoEvent;
    Emit(timeline_.End(call), PathPart::kWaiting, work);
    return FromHost(timeline_.track[call]);
  }

  /// Takes host code of a thread back to a wait for the GPU; returns the work it waited for.
  uint32_t FromHost(uint32_t track) {
    if (track == kNoEvent) return kNoEvent;
    const int64_t here = at_;
    const std::vector<uint32_t>& waits = waits_.at(track);
    auto wait = std::ranges::upper_bound(waits, here, {},
                                         [this](uint32_t event) { return timeline_.End(event); });
    while (wait != waits.begin()) {
      --wait;
      const uint32_t awaited = LastWork(timeline_.End(*wait));
      if (awaited == kNoEvent || timeline_.End(awaited) <= timeline_.start[*wait]) continue;
      if (timeline_.start[awaited] >= here) continue;
      TakeHost(track, timeline_.End(awaited));
      return awaited;
    }
    TakeHost(track, window_.begin);
    return kNoEvent;
  }

  /// Charges the thread's time from `begin` to here to the innermost events.
  void TakeHost(uint32_t track, int64_t begin) {
    begin = std::max(begin, window_.begin);
    const std::vector<uint32_t>& events = index_.threads().at(track);
    const auto after = std::ranges::lower_bound(
        events, at_, {}, [this](uint32_t event) { return timeline_.start[event]; });
    for (auto i = after; i != events.begin() && at_ > begin;) {
      const uint32_t event = *--i;
      TakeAfter(event, begin);
      if (timeline_.start[event] < at_)
        Emit(std::max(begin, timeline_.start[event]), PathPart::kHost, event);
    }
    Emit(begin, PathPart::kHost, kNoEvent);
  }

  /// Charges the time after an event to the events around it, from the outermost inwards.
  void TakeAfter(uint32_t event, int64_t begin) {
    std::vector<uint32_t> chain{event};
    while (timeline_.End(chain.back()) < at_ && index_.ParentOf(chain.back()) != kNoEvent)
      chain.push_back(index_.ParentOf(chain.back()));
    uint32_t outer = timeline_.End(chain.back()) < at_ ? kNoEvent : chain.back();
    for (; !chain.empty(); chain.pop_back()) {
      if (timeline_.End(chain.back()) < at_)
        Emit(std::max(begin, timeline_.End(chain.back())), PathPart::kHost, outer);
      outer = chain.back();
    }
  }

  const EventIndex& index_;
  const Timeline& timeline_;
  Interval window_;
  int64_t at_;
  std::map<int32_t, std::vector<uint32_t>> by_end_;
  std::map<uint32_t, std::vector<uint32_t>> waits_;
  std::vector<PathSegment> segments_;
};

std::vector<PathRow> RowsOf(const Timeline& timeline, const std::vector<PathSegment>& segments) {
  std::map<std::pair<PathPart, uint32_t>, PathRow> rows;
  for (const PathSegment& segment : segments) {
    const uint32_t name = segment.event == kNoEvent ? 0 : timeline.name[segment.event];
    PathRow& row = rows[{segment.part, name}];
    row.part = segment.part;
    row.name = name;
    row.total += segment.at.length();
    ++row.count;
  }
  std::vector<PathRow> list;
  for (const auto& [key, row] : rows) list.push_back(row);
  std::ranges::stable_sort(list, std::greater<>(), &PathRow::total);
  return list;
}

}  // namespace

std::string_view Name(PathPart part) {
  static constexpr std::string_view kNames[] = {"gpu", "waiting", "host"};
  return kNames[static_cast<size_t>(part)];
}

int64_t CriticalPath::TotalOf(PathPart part) const {
  int64_t total = 0;
  for (const PathSegment& segment : segments)
    total += segment.part == part ? segment.at.length() : 0;
  return total;
}

CriticalPath FindCriticalPath(const EventIndex& index, Interval window) {
  CriticalPath path;
  path.segments = Walk(index, window).Run();
  path.rows = RowsOf(index.timeline(), path.segments);
  return path;
}

}  // namespace atunner::trace
