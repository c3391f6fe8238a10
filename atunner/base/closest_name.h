// "Did you mean …?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace atunner {

/// The name most like `name` among `candidates` ("sofmax" → "softmax"; hyphens and underscores are
/// the same), or "" when none is near.
std::string ClosestName(std::string_view name, std::span<const std::string> candidates);
/// A hint for a name that is none of a few: the closest one, or all of them.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

}  // namespace atunner
