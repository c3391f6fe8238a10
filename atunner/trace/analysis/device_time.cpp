#include "atunner/trace/analysis/device_time.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "atunner/trace/analysis/idle_causes.h"

namespace atunner::trace {
namespace {

struct WorkSets {
  IntervalSet compute, communication, copies;
};

WorkSets SetsOf(const EventIndex& index, const std::vector<uint32_t>& events, Interval window) {
  const Timeline& timeline = index.timeline();
  std::vector<Interval> compute, communication, copies;
  for (const uint32_t event : events) {
    const Interval at{std::max(timeline.start[event], window.begin),
                      std::min(timeline.End(event), window.end)};
    if (timeline.kind[event] != EventKind::kKernel)
      copies.push_back(at);
    else
      (index.IsCommunication(event) ? communication : compute).push_back(at);
  }
  return {Union(std::move(compute)), Union(std::move(communication)), Union(std::move(copies))};
}

std::vector<Gap> GapsOf(const EventIndex& index, const std::vector<uint32_t>& events,
                        const IntervalSet& busy, Interval window, int32_t device) {
  std::vector<Gap> gaps;
  for (const Interval& at : Subtract({window}, busy)) {
    const auto next = std::ranges::lower_bound(
        events, at.end, {}, [&](uint32_t event) { return index.timeline().start[event]; });
    const bool found = next != events.end() && index.timeline().start[*next] == at.end;
    gaps.push_back({device, at, found ? *next : kNoEvent, {}});
  }
  return gaps;
}

DeviceTime TimeOf(int32_t device, const WorkSets& sets, Interval window, IntervalSet& busy) {
  DeviceTime time{.device = device, .window = window.length()};
  const IntervalSet exposed = Subtract(sets.communication, sets.compute);
  std::vector<Interval> kernels = sets.compute;
  kernels.insert(kernels.end(), sets.communication.begin(), sets.communication.end());
  const IntervalSet running = Union(std::move(kernels));
  std::vector<Interval> all = running;
  all.insert(all.end(), sets.copies.begin(), sets.copies.end());
  busy = Union(std::move(all));
  time.busy = Length(busy);
  time.compute = Length(sets.compute);
  time.communication = Length(sets.communication);
  time.copies = Length(sets.copies);
  time.exposed_communication = Length(exposed);
  time.exposed_copies = Length(Subtract(sets.copies, running));
  return time;
}

std::vector<StreamTime> StreamsOf(const EventIndex& index, Interval window) {
  std::map<uint32_t, std::vector<Interval>> streams;
  for (const auto& [device, events] : index.work())
    for (const uint32_t event : events)
      streams[index.timeline().track[event]].push_back(
          {std::max(index.timeline().start[event], window.begin),
           std::min(index.timeline().End(event), window.end)});
  std::vector<StreamTime> times;
  for (auto& [track, intervals] : streams) {
    const size_t events = intervals.size();
    times.push_back({track, Length(Union(std::move(intervals))), events});
  }
  return times;
}

}  // namespace

std::string_view Name(IdleCause cause) {
  static constexpr std::string_view kNames[] = {"data_loading",   "communication",   "allocation",
                                                "module_loading", "synchronization", "launch",
                                                "host_work",      "dependency",      "unknown"};
  return kNames[static_cast<size_t>(cause)];
}

std::string_view Title(IdleCause cause) {
  static constexpr std::string_view kTitles[] = {"data loading",    "communication on the host",
                                                 "allocation",      "loading of code",
                                                 "synchronization", "launch",
                                                 "host late",       "dependency",
                                                 "unknown"};
  return kTitles[static_cast<size_t>(cause)];
}

IdleCause Gap::Main() const {
  const auto largest = std::ranges::max_element(causes);
  return static_cast<IdleCause>(std::distance(causes.begin(), largest));
}

DeviceTimes DeviceTimesOf(const EventIndex& index, Interval window, size_t gaps) {
  DeviceTimes times;
  const IdleCauses causes(index);
  std::vector<Gap> all;
  for (const auto& [device, events] : index.work()) {
    IntervalSet busy;
    DeviceTime time = TimeOf(device, SetsOf(index, events, window), window, busy);
    for (Gap& gap : GapsOf(index, events, busy, window, device)) {
      causes.Explain(gap);
      for (size_t cause = 0; cause < kIdleCauses; ++cause) time.idle[cause] += gap.causes[cause];
      all.push_back(gap);
    }
    times.devices.push_back(time);
  }
  times.streams = StreamsOf(index, window);
  const size_t kept = std::min(gaps, all.size());
  std::ranges::partial_sort(all, all.begin() + static_cast<ptrdiff_t>(kept), std::greater<>(),
                            [](const Gap& gap) { return gap.at.length(); });
  all.resize(kept);
  times.longest = std::move(all);
  return times;
}

}  // namespace atunner::trace
