#include "atunner/jobs/requests/stage.h"

#include <algorithm>
#include <string>

namespace atunner::jobs {
namespace {

constexpr std::string_view kNames[] = {"graph",  "fused", "partition", "template",
                                       "source", "plan",  "ptx",       "verify"};

}  // namespace

std::string_view Name(Stage stage) { return kNames[static_cast<size_t>(stage)]; }

std::optional<Stage> ParseStage(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Stage>(found - std::begin(kNames));
}

std::string StageNames() {
  std::string names;
  for (const std::string_view name : kNames)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace atunner::jobs
