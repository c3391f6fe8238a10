#include "atunner/search/strategies/finalists.h"

#include <algorithm>
#include <cmath>

namespace atunner {

size_t FinalistCount(std::span<const Contender> ranking, size_t fewest, size_t most) {
  size_t count = std::min(fewest, ranking.size());
  if (ranking.empty()) return 0;
  const Contender& first = ranking.front();
  for (size_t i = count; i < std::min(most, ranking.size()); ++i) {
    const double error = std::hypot(first.time * first.relative_error,
                                    ranking[i].time * ranking[i].relative_error);
    if (ranking[i].time - first.time < 2 * error) count = i + 1;
  }
  return count;
}

}  // namespace atunner
