#include "atunner/trace/readers/kineto_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

namespace atunner::trace {
namespace {

constexpr std::string_view kKeys[] = {
#define X(id, key) key,
#include "atunner/trace/readers/kineto_fields.def"
#undef X
};

/// Fields by the length of their keys: most keys of a trace differ in length from all of these.
using FieldsByLength = std::array<std::vector<Field>, 32>;

FieldsByLength MakeFieldsByLength() {
  FieldsByLength fields;
  for (size_t i = 0; i < std::size(kKeys); ++i)
    fields[kKeys[i].size()].push_back(static_cast<Field>(i + 1));
  return fields;
}

constexpr std::pair<std::string_view, EventKind> kCategories[] = {
    {"cpu_op", EventKind::kOperator},
    {"kernel", EventKind::kKernel},
    {"cuda_runtime", EventKind::kCall},
    {"cuda_driver", EventKind::kCall},
    {"python_function", EventKind::kPython},
    {"user_annotation", EventKind::kAnnotation},
    {"gpu_memcpy", EventKind::kMemcpy},
    {"gpu_memset", EventKind::kMemset},
    {"gpu_user_annotation", EventKind::kGpuAnnotation},
    {"cuda_sync", EventKind::kSync},
    {"overhead", EventKind::kOverhead},
    {"Operator", EventKind::kOperator},
    {"Runtime", EventKind::kCall},
    {"Kernel", EventKind::kKernel},
    {"Memcpy", EventKind::kMemcpy},
    {"Memset", EventKind::kMemset},
    {"privateuse1_runtime", EventKind::kCall},
    {"hip_runtime", EventKind::kCall},
};

MemorySpace SpaceOf(std::string_view text) {
  if (text.starts_with("Pageable")) return MemorySpace::kPageable;
  if (text.starts_with("Pinned")) return MemorySpace::kPinned;
  if (text.starts_with("Device") || text.starts_with("Array")) return MemorySpace::kDevice;
  if (text.starts_with("Managed") || text.starts_with("Unified")) return MemorySpace::kManaged;
  return MemorySpace::kUnknown;
}

}  // namespace

Field FieldOf(std::string_view key) {
  static const FieldsByLength kFields = MakeFieldsByLength();
  if (key.size() >= kFields.size()) return Field::kNone;
  for (const Field field : kFields[key.size()]) {
    const std::string_view known = kKeys[static_cast<size_t>(field) - 1];
    if (known[0] == key[0] && known == key) return field;
  }
  return Field::kNone;
}

std::optional<EventKind> KindOfCategory(std::string_view category) {
  for (const auto& [name, kind] : kCategories)
    if (name == category) return kind;
  return std::nullopt;
}

bool IsIgnoredCategory(std::string_view category) {
  static constexpr std::string_view kIgnored[] = {
      "", "ac2g", "fwdbwd", "Trace", "async", "cpu_instant_event", "forward", "fwd", "python"};
  return std::ranges::find(kIgnored, category) != std::end(kIgnored);
}

CopyDetail CopyOfName(std::string_view name) {
  CopyDetail copy;
  copy.peer = name.starts_with("Memcpy PtoP");
  const size_t open = name.find('('), arrow = name.find(" -> ");
  if (open == std::string_view::npos) return copy;
  copy.from = SpaceOf(name.substr(open + 1));
  if (arrow != std::string_view::npos) copy.to = SpaceOf(name.substr(arrow + 4));
  return copy;
}

}  // namespace atunner::trace
