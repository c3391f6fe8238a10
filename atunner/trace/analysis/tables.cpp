#include "atunner/trace/analysis/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

namespace atunner::trace {
namespace {

bool Inside(const Timeline& timeline, uint32_t event, Interval window) {
  return timeline.start[event] >= window.begin && timeline.start[event] < window.end;
}

/// The innermost operator around the call that submitted `work`, or kNoEvent.
uint32_t OperatorOf(const EventIndex& index, uint32_t work) {
  uint32_t event = index.CallOf(work);
  while (event != kNoEvent && index.timeline().kind[event] != EventKind::kOperator)
    event = index.ParentOf(event);
  return event;
}

struct KernelSums {
  KernelRow row;
  std::vector<int64_t> durations;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> operators;  ///< by name and shapes
};

void AddKernel(const EventIndex& index, uint32_t event, KernelSums& sums) {
  const Timeline& timeline = index.timeline();
  const int64_t duration = timeline.duration[event];
  KernelRow& row = sums.row;
  row.name = timeline.name[event];
  row.kernel_class = index.IsCommunication(event) ? KernelClass::kCommunication
                                                  : index.ClassOf(event);
  row.total += duration;
  ++row.count;
  if (duration >= row.longest) {
    row.longest = duration;
    if (const KernelDetail* detail = timeline.KernelOf(event)) row.detail = *detail;
  }
  sums.durations.push_back(duration);
  const uint32_t caller = OperatorOf(index, event);
  if (caller != kNoEvent) ++sums.operators[{timeline.name[caller], timeline.detail[caller]}];
}

void Complete(const Timeline& timeline, KernelSums& sums) {
  KernelRow& row = sums.row;
  row.shortest = *std::ranges::min_element(sums.durations);
  const auto middle = sums.durations.begin() + static_cast<ptrdiff_t>(sums.durations.size() / 2);
  std::ranges::nth_element(sums.durations, middle);
  row.median = *middle;
  row.tensor_cores = UsesTensorCores(timeline.strings[row.name]);
  uint64_t most = 0;
  for (const auto& [caller, count] : sums.operators) {
    if (count <= most) continue;
    most = count;
    std::tie(row.operator_name, row.operator_shapes) = caller;
  }
}

std::vector<KernelRow> KernelsOf(const EventIndex& index, Interval window) {
  const Timeline& timeline = index.timeline();
  std::unordered_map<uint32_t, KernelSums> sums;
  for (const auto& [device, events] : index.work())
    for (const uint32_t event : events)
      if (timeline.kind[event] == EventKind::kKernel && Inside(timeline, event, window))
        AddKernel(index, event, sums[timeline.name[event]]);
  std::vector<KernelRow> rows;
  int64_t total = 0;
  for (auto& [name, kernel] : sums) {
    Complete(timeline, kernel);
    total += kernel.row.total;
    rows.push_back(kernel.row);
  }
  for (KernelRow& row : rows)
    if (total > 0) row.share = static_cast<double>(row.total) / static_cast<double>(total);
  std::ranges::sort(rows, [&](const KernelRow& a, const KernelRow& b) {
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  return rows;
}

/// Adds the work of one call to each operator around it, once for each name.
void AddDevice(const EventIndex& index, uint32_t work,
               std::unordered_map<uint32_t, OperatorRow>& rows) {
  const Timeline& timeline = index.timeline();
  bool innermost = true;
  std::vector<uint32_t> seen;
  for (uint32_t event = index.CallOf(work); event != kNoEvent; event = index.ParentOf(event)) {
    if (timeline.kind[event] != EventKind::kOperator) continue;
    const auto row = rows.find(timeline.name[event]);
    if (row == rows.end()) continue;
    if (std::exchange(innermost, false)) row->second.device_self += timeline.duration[work];
    if (std::ranges::find(seen, timeline.name[event]) != seen.end()) continue;
    seen.push_back(timeline.name[event]);
    row->second.device_total += timeline.duration[work];
    ++row->second.launches;
  }
}

std::vector<OperatorRow> OperatorsOf(const EventIndex& index, Interval window) {
  const Timeline& timeline = index.timeline();
  std::unordered_map<uint32_t, OperatorRow> rows;
  for (const auto& [track, events] : index.threads()) {
    for (const uint32_t event : events) {
      if (timeline.kind[event] != EventKind::kOperator || !Inside(timeline, event, window))
        continue;
      OperatorRow& row = rows[timeline.name[event]];
      row.name = timeline.name[event];
      ++row.count;
      const uint32_t parent = index.ParentOf(event);
      const bool recursive = parent != kNoEvent && timeline.name[parent] == row.name;
      row.host_total += recursive ? 0 : timeline.duration[event];
      row.host_self += index.SelfTime(event);
    }
  }
  for (const auto& [device, events] : index.work())
    for (const uint32_t event : events)
      if (Inside(timeline, event, window)) AddDevice(index, event, rows);
  std::vector<OperatorRow> list;
  for (const auto& [name, row] : rows) list.push_back(row);
  std::ranges::sort(list, [](const OperatorRow& a, const OperatorRow& b) {
    return std::tuple(-a.device_total, -a.host_total, a.name) <
           std::tuple(-b.device_total, -b.host_total, b.name);
  });
  return list;
}

std::string CopyTitle(const Timeline& timeline, uint32_t event, const CopyDetail& copy) {
  const std::string_view name = timeline.NameOf(event);
  const std::string kind(name.substr(0, name.find(" (")));
  if (timeline.kind[event] == EventKind::kMemset) return kind;
  return fmt::format("{} ({} -> {})", kind, Name(copy.from), Name(copy.to));
}

std::vector<CopyRow> CopiesOf(const EventIndex& index, Interval window) {
  const Timeline& timeline = index.timeline();
  std::map<std::string, CopyRow> rows;
  for (const auto& [device, events] : index.work()) {
    for (const uint32_t event : events) {
      if (timeline.kind[event] == EventKind::kKernel || !Inside(timeline, event, window)) continue;
      const CopyDetail* found = timeline.CopyOf(event);
      const CopyDetail copy = found == nullptr ? CopyDetail() : *found;
      const std::string title = CopyTitle(timeline, event, copy);
      CopyRow& row = rows[title];
      row.name = title;
      row.from = copy.from;
      row.to = copy.to;
      row.peer = copy.peer;
      row.set = timeline.kind[event] == EventKind::kMemset;
      ++row.count;
      row.bytes += std::clamp<int64_t>(copy.bytes, 0, int64_t{1} << 45);
      row.total += timeline.duration[event];
    }
  }
  std::vector<CopyRow> list;
  for (const auto& [name, row] : rows) list.push_back(row);
  std::ranges::stable_sort(list, std::greater<>(), &CopyRow::total);
  return list;
}

std::vector<CallRow> CallsOf(const EventIndex& index, Interval window) {
  const Timeline& timeline = index.timeline();
  std::map<uint32_t, CallRow> rows;
  for (const auto& [track, events] : index.threads()) {
    for (const uint32_t event : events) {
      if (timeline.kind[event] != EventKind::kCall || !Inside(timeline, event, window)) continue;
      CallRow& row = rows[timeline.name[event]];
      row.name = timeline.name[event];
      row.activity = index.ActivityOf(event);
      ++row.count;
      row.total += timeline.duration[event];
    }
  }
  std::vector<CallRow> list;
  for (const auto& [name, row] : rows) list.push_back(row);
  std::ranges::stable_sort(list, std::greater<>(), &CallRow::total);
  return list;
}

void CountGraphs(const EventIndex& index, Interval window, Tables& tables) {
  const Timeline& timeline = index.timeline();
  for (const auto& [track, events] : index.threads()) {
    for (const uint32_t event : events) {
      if (index.ActivityOf(event) != HostActivity::kGraphLaunch || !Inside(timeline, event, window))
        continue;
      ++tables.graph_launches;
      tables.graph_work += index.WorkOf(event).size();
    }
  }
  for (const auto& [device, events] : index.work())
    for (const uint32_t event : events)
      tables.unlinked += Inside(timeline, event, window) && index.CallOf(event) == kNoEvent ? 1 : 0;
}

}  // namespace

Tables TablesOf(const EventIndex& index, Interval window) {
  Tables tables;
  tables.kernels = KernelsOf(index, window);
  tables.operators = OperatorsOf(index, window);
  tables.copies = CopiesOf(index, window);
  tables.calls = CallsOf(index, window);
  CountGraphs(index, window, tables);
  return tables;
}

}  // namespace atunner::trace
