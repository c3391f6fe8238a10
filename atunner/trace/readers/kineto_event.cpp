#include "atunner/trace/readers/kineto_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "atunner/trace/readers/decimal_time.h"

namespace atunner::trace {
namespace {

constexpr int64_t kTextIds = int64_t{1} << 40;
constexpr int64_t kLongest = 1'000'000'000'000'000;  // ns: eleven days
enum Lookup : uint8_t { kNotLooked, kIgnored, kUnknown, kFirstKind };

constexpr std::pair<Field, int64_t KinetoEvent::*> kIntegers[] = {
    {Field::kDevice, &KinetoEvent::device},     {Field::kDeviceId, &KinetoEvent::device},
    {Field::kStream, &KinetoEvent::stream},     {Field::kCorrelation, &KinetoEvent::correlation},
    {Field::kBytes, &KinetoEvent::bytes},       {Field::kMemoryBytes, &KinetoEvent::bytes},
    {Field::kAddress, &KinetoEvent::address},   {Field::kAllocated, &KinetoEvent::allocated},
    {Field::kReserved, &KinetoEvent::reserved}, {Field::kDeviceType, &KinetoEvent::device_type},
};

int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

/// Grids have at most 2^31 x 65535 x 65535 blocks; larger products come from damaged files.
int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

}  // namespace

int64_t KinetoEvents::PlaceOf(std::string_view text) {
  if (const auto value = IntegerOf(text); value && *value > -kTextIds && *value < kTextIds)
    return *value;
  return kTextIds + timeline_.strings.Intern(text);
}

void KinetoEvents::SetText(Field field, std::string_view text) {
  KinetoEvent& e = event_;
  StringTable& strings = timeline_.strings;
  switch (field) {
    case Field::kPh:
      e.phase = text.size() == 1 ? text[0] : 0;
      break;
    case Field::kCat:
      e.category = strings.Intern(text);
      break;
    case Field::kName:
      e.name = strings.Intern(text);
      break;
    case Field::kPid:
      e.pid = PlaceOf(text);
      break;
    case Field::kTid:
      e.tid = PlaceOf(text);
      break;
    case Field::kCollective:
      e.kernel.collective = strings.Intern(text);
      e.has_detail = true;
      break;
    case Field::kGroup:
      e.kernel.group = strings.Intern(text);
      break;
    case Field::kDtype:
      e.kernel.dtype = strings.Intern(text);
      break;
    default:  // some writers put numbers into quotes
      SetNumber(field, text);
  }
}

void KinetoEvents::SetNumber(Field field, std::string_view text) {
  KinetoEvent& e = event_;
  switch (field) {
    case Field::kTs:
      e.start = NanosecondsOf(text);
      break;
    case Field::kDur:
      e.duration = NanosecondsOf(text);
      break;
    case Field::kPid:
      e.pid = PlaceOf(text);
      break;
    case Field::kTid:
      e.tid = PlaceOf(text);
      break;
    case Field::kOccupancy:  // percent; the reader of times gives thousandths
      if (const auto thousandths = NanosecondsOf(text)) {
        e.kernel.occupancy = static_cast<float>(*thousandths) / 1e5f;
        e.has_detail = true;
      }
      break;
    default:
      if (const auto value = IntegerOf(text)) SetInteger(field, *value);
  }
}

void KinetoEvents::SetInteger(Field field, int64_t value) {
  KinetoEvent& e = event_;
  if (field == Field::kRegisters) {
    e.kernel.registers = Narrow(value);
    e.has_detail = true;
  } else if (field == Field::kSharedMemory) {
    e.kernel.shared_bytes = Narrow(value);
  } else if (field == Field::kElements) {
    e.kernel.message_elements = value;
  } else {
    for (const auto& [known, member] : kIntegers)
      if (known == field) e.*member = value;
  }
}

void KinetoEvents::SetExtent(Field field, std::string_view text) {
  const int64_t extent = IntegerOf(text).value_or(0);
  KernelDetail& kernel = event_.kernel;
  event_.has_detail = true;
  if (field == Field::kGrid)
    kernel.blocks = Product(kernel.blocks > 0 ? kernel.blocks : 1, extent);
  else
    kernel.threads = Narrow(Product(kernel.threads > 0 ? kernel.threads : 1, extent));
}

void KinetoEvents::End() {
  if (!dims_.empty()) event_.dims = timeline_.strings.Intern(dims_);
  dims_.clear();
  if (event_.phase == 'X')
    AddComplete();
  else if (event_.phase == 'i' && timeline_.strings[event_.name] == "[memory]")
    AddMemory();
  else if (event_.phase == 'M')
    AddLabel();
}

std::optional<EventKind> KinetoEvents::Kind() {
  if (event_.category == 0) {  // PyTorch built without Kineto: the process says where it ran
    if (event_.pid < kTextIds) return std::nullopt;
    const std::string_view process = timeline_
                                         .strings[static_cast<uint32_t>(event_.pid - kTextIds)];
    if (process == "CPU functions") return EventKind::kOperator;
    if (process == "CUDA functions") return EventKind::kKernel;
    return std::nullopt;
  }
  if (event_.category >= kinds_.size()) kinds_.resize(event_.category + 1, kNotLooked);
  uint8_t& known = kinds_[event_.category];
  if (known == kNotLooked) {
    const std::string_view category = timeline_.strings[event_.category];
    known = IsIgnoredCategory(category) ? kIgnored : kUnknown;
    if (const auto kind = KindOfCategory(category))
      known = static_cast<uint8_t>(kFirstKind + static_cast<int>(*kind));
  }
  if (known == kUnknown) ++unknown_[event_.category];
  if (known < kFirstKind) return std::nullopt;
  return static_cast<EventKind>(known - kFirstKind);
}

uint32_t KinetoEvents::TrackOf(EventKind kind) {
  const bool gpu = IsOnGpu(kind);
  const bool stated = gpu && event_.stream >= 0 && event_.device >= 0;
  const Place place = stated ? Place{event_.device, event_.stream} : Place{event_.pid, event_.tid};
  const std::pair<bool, Place> key{gpu, place};
  if (key == last_place_) return last_track_;
  const auto [found, fresh] = tracks_.try_emplace(key,
                                                  static_cast<uint32_t>(timeline_.tracks.size()));
  if (fresh) {
    const int64_t device = place.first < kTextIds ? place.first : 0;
    timeline_.tracks.push_back({gpu, gpu ? Narrow(device) : -1, place.second, 0, ""});
  }
  last_place_ = key;
  return last_track_ = found->second;
}

uint32_t KinetoEvents::DetailOf(EventKind kind) {
  if (kind == EventKind::kOperator) return event_.dims;
  if (kind == EventKind::kKernel && event_.has_detail) {
    timeline_.kernels.push_back(event_.kernel);
    return static_cast<uint32_t>(timeline_.kernels.size());
  }
  if (kind != EventKind::kMemcpy && kind != EventKind::kMemset) return 0;
  CopyDetail copy = CopyOfName(timeline_.strings[event_.name]);
  copy.bytes = event_.bytes;
  timeline_.copies.push_back(copy);
  return static_cast<uint32_t>(timeline_.copies.size());
}

void KinetoEvents::AddComplete() {
  const auto kind = Kind();
  if (!kind) return;
  const int64_t duration = event_.duration.value_or(0);
  if (!event_.start || duration < 0 || duration > kLongest) {
    ++implausible_;
    return;
  }
  ++seen_;
  timeline_.Append(*event_.start, duration, event_.name, TrackOf(*kind), *kind,
                   static_cast<uint32_t>(event_.correlation), DetailOf(*kind));
}

void KinetoEvents::AddMemory() {
  if (!event_.start) return;
  ++seen_;
  const bool host = event_.device_type == 0;
  timeline_.memory.push_back({*event_.start, static_cast<uint64_t>(event_.address), event_.bytes,
                              host ? -1 : Narrow(event_.device), event_.allocated,
                              event_.reserved});
}

void KinetoEvents::AddLabel() {
  if (timeline_.strings[event_.name] == "thread_name")
    labels_[{event_.pid, event_.tid}] = event_.label;
}

void KinetoEvents::Finish() {
  for (const auto& [key, track] : tracks_) {
    const auto label = labels_.find(key.second);
    if (label != labels_.end())
      timeline_.tracks[track].name = std::string(timeline_.strings[label->second]);
  }
  for (const auto& [category, count] : unknown_)
    timeline_.notes.push_back(fmt::format("{} events of the unknown category '{}' were left out",
                                          count, timeline_.strings[category]));
  if (implausible_ > 0)
    timeline_.notes.push_back(
        fmt::format("{} events without a plausible time were left out", implausible_));
}

}  // namespace atunner::trace
