// Suggestions for misspelt names: "did you mean …?".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace atunner {

/// The name with underscores in place of hyphens, so that "log-softmax" equals "log_softmax".
std::string WithUnderscores(std::string_view name);
/// The name most like `name` among `candidates` ("sofmax" → "softmax"; hyphens and underscores are
/// the same), or "" when none is near.
std::string ClosestName(std::string_view name, std::span<const std::string> candidates);
/// A hint for an unknown name: the closest known one, or the list of all.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

}  // namespace atunner
