#include "atunner/base/closest_name.h"

#include <algorithm>
#include <vector>

namespace atunner {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string WithUnderscores(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

std::string ClosestName(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = EditDistance(WithUnderscores(name), WithUnderscores(candidate));
    // A prefix is near: "max" suggests "maximum".
    if (name.size() >= 3 && candidate.starts_with(name)) distance = std::min<size_t>(distance, 1);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string> candidates) {
  const std::string near = ClosestName(name, candidates);
  if (!near.empty()) return "did you mean '" + near + "'?";
  std::string all;
  for (const std::string& candidate : candidates)
    all += (all.empty() ? "there is " : ", ") + candidate;
  return all.empty() ? "there is none" : all;
}

}  // namespace atunner
