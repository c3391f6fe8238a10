// The words of Kineto's JSON: categories of events and keys of their fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// Keys that the reader uses. kNone is any other.
enum class Field : uint8_t {
  kNone,
#define X(id, key) id,
#include "atunner/trace/readers/kineto_fields.def"
#undef X
};

Field FieldOf(std::string_view key);

/// The kind of events of a category: "kernel", and "Kernel" as the profiler of 2021 wrote.
/// nullopt for all others, for example the flow events "ac2g".
std::optional<EventKind> KindOfCategory(std::string_view category);
/// True for categories whose events carry nothing that an analysis needs.
bool IsIgnoredCategory(std::string_view category);

/// "Memcpy HtoD (Pageable -> Device)".
CopyDetail CopyOfName(std::string_view name);

}  // namespace atunner::trace
