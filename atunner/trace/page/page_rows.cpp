#include "atunner/trace/page/page_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "atunner/trace/analysis/kernel_class.h"

namespace atunner::trace {
namespace {

constexpr size_t kDeepest = 24;

enum Color : uint8_t {
  kMath,
  kMaps,
  kCollective,
  kCopy,
  kOperatorColor,
  kCallColor,
  kNote,
  kOther
};

constexpr std::array<std::pair<const char*, const char*>, 8> kPalette = {{
    {"#2f6fde", "matrix products, convolutions, attention"},
    {"#2a9d5c", "other kernels"},
    {"#c8442f", "communication"},
    {"#b07d12", "copies and memory sets"},
    {"#6b7f99", "operators"},
    {"#8a56b8", "CUDA calls"},
    {"#3d8f8f", "annotations"},
    {"#8c8c8c", "Python and others"},
}};

Color ColorOf(EventKind kind, std::string_view name) {
  switch (kind) {
    case EventKind::kKernel: {
      const KernelClass value = ClassOfKernel(name);
      if (value == KernelClass::kCommunication) return kCollective;
      return CanUseTensorCores(value) ? kMath : kMaps;
    }
    case EventKind::kMemcpy:
    case EventKind::kMemset:
      return kCopy;
    case EventKind::kOperator:
      return kOperatorColor;
    case EventKind::kCall:
      return kCallColor;
    case EventKind::kAnnotation:
    case EventKind::kGpuAnnotation:
      return kNote;
    default:
      return kOther;
  }
}

std::string TrackName(const Timeline& timeline, const Track& track, bool ranks) {
  const std::string rank = ranks ? fmt::format("rank {} ", timeline.rank) : "";
  if (track.gpu) return fmt::format("{}GPU {} stream {}", rank, track.device, track.id);
  if (!track.name.empty()) return rank + track.name;
  return fmt::format("{}thread {}", rank, track.id);
}

class Layout {
 public:
  explicit Layout(PageRows& rows) : rows_(rows) {}

  void Add(const Timeline& timeline, bool gpu, bool ranks) {
    std::vector<std::vector<uint32_t>> tracks(timeline.tracks.size());
    for (uint32_t event = 0; event < timeline.size(); ++event)
      if (IsOnGpu(timeline.kind[event]) == gpu) tracks[timeline.track[event]].push_back(event);
    names_.clear();
    for (size_t track = 0; track < tracks.size(); ++track)
      if (!tracks[track].empty())
        AddTrack(timeline, tracks[track], TrackName(timeline, timeline.tracks[track], ranks));
  }

 private:
  void AddTrack(const Timeline& timeline, const std::vector<uint32_t>& events, std::string name) {
    std::vector<std::vector<uint32_t>> rows;
    std::vector<int64_t> ends;
    for (const uint32_t event : events) {
      size_t row = 0;
      while (row < ends.size() && ends[row] > timeline.start[event]) ++row;
      if (row >= kDeepest) continue;
      if (row == ends.size()) {
        ends.push_back(0);
        rows.emplace_back();
      }
      ends[row] = timeline.End(event);
      rows[row].push_back(event);
    }
    PageTrack track{std::move(name), {}};
    for (const std::vector<uint32_t>& row : rows) {
      const size_t begin = rows_.start.size();
      for (const uint32_t event : row) AddEvent(timeline, event);
      track.rows.emplace_back(begin, rows_.start.size());
    }
    rows_.tracks.push_back(std::move(track));
  }

  void AddEvent(const Timeline& timeline, uint32_t event) {
    rows_.start.push_back(static_cast<double>(timeline.start[event] - rows_.origin));
    rows_.duration.push_back(static_cast<float>(timeline.duration[event]));
    const uint64_t key = uint64_t{timeline.name[event]} << 8 |
                         static_cast<uint64_t>(timeline.kind[event]);
    const auto [found, fresh] = names_.try_emplace(key, static_cast<uint32_t>(rows_.names.size()));
    if (fresh) {
      rows_.names.emplace_back(timeline.NameOf(event));
      rows_.colors.push_back(ColorOf(timeline.kind[event], timeline.NameOf(event)));
    }
    rows_.name.push_back(found->second);
  }

  PageRows& rows_;
  std::unordered_map<uint64_t, uint32_t> names_;  ///< by string id and kind, of one timeline
};

}  // namespace

std::span<const std::pair<const char*, const char*>> Palette() { return kPalette; }

PageRows LayOut(std::span<const Analysis> analyses) {
  PageRows rows;
  int64_t end = std::numeric_limits<int64_t>::min();
  rows.origin = std::numeric_limits<int64_t>::max();
  for (const Analysis& analysis : analyses) {
    const Timeline& timeline = *analysis.timeline;
    for (size_t event = 0; event < timeline.size(); ++event) {
      rows.origin = std::min(rows.origin, timeline.start[event]);
      end = std::max(end, timeline.End(event));
    }
  }
  if (end < rows.origin) rows.origin = end = 0;
  rows.length = std::max<int64_t>(1, end - rows.origin);
  Layout layout(rows);
  for (const bool gpu : {true, false})
    for (const Analysis& analysis : analyses)
      layout.Add(*analysis.timeline, gpu, analyses.size() > 1);
  return rows;
}

}  // namespace atunner::trace
