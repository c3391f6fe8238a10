// What several analyses ask of a timeline: events by device and thread, who submitted what, and
// which host event stands inside which.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "atunner/trace/analysis/host_activity.h"
#include "atunner/trace/analysis/kernel_class.h"
#include "atunner/trace/timeline/intervals.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

inline constexpr uint32_t kNoEvent = ~uint32_t{0};

/// Refers to the timeline, which must outlive it.
class EventIndex {
 public:
  explicit EventIndex(const Timeline& timeline);

  const Timeline& timeline() const { return timeline_; }
  /// From the first start to the last end of all events.
  Interval span() const { return span_; }

  /// Kernels, copies and memory sets of each device in the order of their starts.
  const std::map<int32_t, std::vector<uint32_t>>& work() const { return work_; }
  /// Host events of each thread in the order of their starts. Key: index of the track.
  const std::map<uint32_t, std::vector<uint32_t>>& threads() const { return threads_; }

  HostActivity ActivityOf(uint32_t event) const { return activities_[event]; }
  /// Class of a kernel; kOther for other events.
  KernelClass ClassOf(uint32_t event) const;
  bool IsCommunication(uint32_t event) const;

  /// The call that submitted a piece of work, or kNoEvent.
  uint32_t CallOf(uint32_t work) const { return call_of_[work]; }
  /// The work that a call submitted: more than one piece for a graph.
  std::span<const uint32_t> WorkOf(uint32_t call) const;
  /// The innermost host event around a host event on its thread, or kNoEvent.
  uint32_t ParentOf(uint32_t event) const { return parent_[event]; }
  /// Duration without that of the events directly inside, nanoseconds.
  int64_t SelfTime(uint32_t event) const { return self_[event]; }

 private:
  void Sort();
  void Classify();
  void Link();
  void Nest(const std::vector<uint32_t>& thread);

  const Timeline& timeline_;
  Interval span_;
  std::map<int32_t, std::vector<uint32_t>> work_;
  std::map<uint32_t, std::vector<uint32_t>> threads_;
  std::vector<HostActivity> activities_;
  std::vector<KernelClass> classes_;  ///< by string id, of names of kernels
  std::vector<uint32_t> call_of_, parent_;
  std::vector<int64_t> self_;
  std::vector<uint32_t> submitted_;        ///< work, grouped by call
  std::vector<uint32_t> submitted_begin_;  ///< by event, in submitted_
};

}  // namespace atunner::trace
