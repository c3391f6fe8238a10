#include "atunner/queue/queue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace atunner::queue {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"queued", "running", "succeeded", "failed",
                                                    "cancelled"};

}  // namespace

std::string_view Name(State state) {
  return kNames[static_cast<size_t>(std::to_underlying(state))];
}

std::optional<State> ParseState(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<State>(found - kNames.begin());
}

bool IsFinal(State state) { return state > State::kRunning; }

}  // namespace atunner::queue
