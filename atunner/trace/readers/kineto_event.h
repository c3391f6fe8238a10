// One event of Kineto's JSON, collected field by field and then added to a timeline.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/trace/readers/kineto_names.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// The fields of an event that were seen so far.
struct KinetoEvent {
  char phase = 0;
  uint32_t name = 0, category = 0;  ///< string ids
  int64_t pid = 0, tid = 0;         ///< texts are numbered from kTextIds
  std::optional<int64_t> start, duration;
  int64_t device = -1, stream = -1, correlation = 0, bytes = 0;
  int64_t address = 0, allocated = 0, reserved = 0, device_type = 1;
  uint32_t dims = 0;        ///< string id
  uint32_t label = 0;       ///< string id of args.name, of metadata events
  bool has_detail = false;  ///< a field of `kernel` is set
  KernelDetail kernel;
};

/// Adds events to a timeline. Knows which categories and tracks were seen.
class KinetoEvents {
 public:
  explicit KinetoEvents(Timeline& timeline) : timeline_(timeline) {}

  KinetoEvent& current() { return event_; }
  void Begin() { event_ = KinetoEvent(); }
  void SetText(Field field, std::string_view text);
  void SetNumber(Field field, std::string_view text);
  void AppendDims(std::string_view piece) { dims_ += piece; }
  /// Multiplies the extents of a grid or block.
  void SetExtent(Field field, std::string_view text);
  void End();
  /// Names the tracks and writes the notes.
  void Finish();
  size_t seen() const { return seen_; }

 private:
  using Place = std::pair<int64_t, int64_t>;

  void SetInteger(Field field, int64_t value);
  void AddComplete();
  void AddMemory();
  void AddLabel();
  std::optional<EventKind> Kind();
  uint32_t TrackOf(EventKind kind);
  uint32_t DetailOf(EventKind kind);
  int64_t PlaceOf(std::string_view text);

  Timeline& timeline_;
  KinetoEvent event_;
  std::string dims_;
  size_t seen_ = 0;
  size_t implausible_ = 0;
  std::map<std::pair<bool, Place>, uint32_t> tracks_;
  std::pair<bool, Place> last_place_{false, {INT64_MIN, INT64_MIN}};
  uint32_t last_track_ = 0;
  std::map<Place, uint32_t> labels_;  ///< string ids of thread names
  /// By string id of the category: 0 = not looked up yet, 1 = ignored, 2 = unknown, else kind + 3.
  std::vector<uint8_t> kinds_;
  std::map<uint32_t, size_t> unknown_;  ///< events by category
};

}  // namespace atunner::trace
