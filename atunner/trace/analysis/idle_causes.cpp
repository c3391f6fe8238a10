#include "atunner/trace/analysis/idle_causes.h"

#include <algorithm>

namespace atunner::trace {
namespace {

/// The cause that time inside such an event is charged to.
IdleCause CauseOf(HostActivity activity) {
  switch (activity) {
    case HostActivity::kDataLoading:
      return IdleCause::kDataLoading;
    case HostActivity::kCommunication:
      return IdleCause::kCommunication;
    case HostActivity::kAllocate:
      return IdleCause::kAllocation;
    case HostActivity::kLoadModule:
      return IdleCause::kModuleLoading;
    case HostActivity::kSynchronize:
    case HostActivity::kBlockingCopy:
      return IdleCause::kSynchronization;
    case HostActivity::kLaunch:
    case HostActivity::kGraphLaunch:
      return IdleCause::kLaunch;
    case HostActivity::kOther:
      return IdleCause::kHostWork;
  }
  return IdleCause::kHostWork;
}

bool Waits(HostActivity activity) {
  return activity == HostActivity::kSynchronize || activity == HostActivity::kBlockingCopy;
}

bool Contains(const IntervalSet& set, int64_t time) {
  const auto after = std::ranges::upper_bound(set, time, {}, &Interval::begin);
  return after != set.begin() && std::prev(after)->end >= time;
}

}  // namespace

IdleCauses::IdleCauses(const EventIndex& index) : index_(index) {
  size_t most = 0;
  for (const auto& [track, events] : index.threads()) {
    AddThread(track, events);
    const auto submitting = static_cast<size_t>(std::ranges::count_if(
        events, [&](uint32_t event) { return Submits(index.ActivityOf(event)); }));
    if (main_ != nullptr && submitting <= most) continue;
    main_ = &threads_.at(track);
    most = submitting;
  }
}

void IdleCauses::AddThread(uint32_t track, const std::vector<uint32_t>& events) {
  std::array<std::vector<Interval>, kIdleCauses> intervals;
  std::vector<Interval> waits;
  for (const uint32_t event : events) {
    const Interval at{index_.timeline().start[event], index_.timeline().End(event)};
    const HostActivity activity = index_.ActivityOf(event);
    intervals[static_cast<size_t>(CauseOf(activity))].push_back(at);
    if (Waits(activity)) waits.push_back(at);
  }
  ThreadTime& thread = threads_[track];
  for (size_t cause = 0; cause < kIdleCauses; ++cause)
    thread.causes[cause] = Union(std::move(intervals[cause]));
  thread.waits = Union(std::move(waits));
}

const IdleCauses::ThreadTime* IdleCauses::ThreadOf(const Gap& gap) const {
  const uint32_t call = gap.next == kNoEvent ? kNoEvent : index_.CallOf(gap.next);
  return call == kNoEvent ? main_ : &threads_.at(index_.timeline().track[call]);
}

void IdleCauses::Explain(Gap& gap) const {
  const auto charge = [&gap](IdleCause cause, int64_t time) {
    gap.causes[static_cast<size_t>(cause)] += time;
  };
  const uint32_t call = gap.next == kNoEvent ? kNoEvent : index_.CallOf(gap.next);
  const Timeline& timeline = index_.timeline();
  if (call != kNoEvent && timeline.End(call) <= gap.at.begin) {
    charge(IdleCause::kDependency, gap.at.length());
    return;
  }
  const ThreadTime* thread = ThreadOf(gap);
  if (thread == nullptr || (gap.next != kNoEvent && call == kNoEvent)) {
    charge(IdleCause::kUnknown, gap.at.length());
    return;
  }
  const bool drained = Contains(thread->waits, gap.at.begin);
  IntervalSet left{gap.at};
  if (call != kNoEvent) {  // after its call the work is on its way
    const int64_t done = std::clamp(timeline.End(call), gap.at.begin, gap.at.end);
    charge(drained ? IdleCause::kSynchronization : IdleCause::kLaunch, gap.at.end - done);
    left = Clip(left, {gap.at.begin, done});
  }
  for (size_t cause = 0; cause < kIdleCauses; ++cause) {
    const IntervalSet part = Intersect(left, Clip(thread->causes[cause], gap.at));
    const bool own = cause < static_cast<size_t>(IdleCause::kSynchronization) || !drained;
    charge(own ? static_cast<IdleCause>(cause) : IdleCause::kSynchronization, Length(part));
    left = Subtract(left, part);
  }
  // Between events the host runs code that the trace does not show, as long as it submits at all.
  const IdleCause rest = call == kNoEvent ? IdleCause::kUnknown : IdleCause::kHostWork;
  charge(drained ? IdleCause::kSynchronization : rest, Length(left));
}

}  // namespace atunner::trace
