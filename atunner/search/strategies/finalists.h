// How many of the best trials may be the fastest, given the errors of their times.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace atunner {

struct Contender {
  double time = 0;
  double relative_error = 0;  ///< standard error over the time
};

/// How many of these, best first, are to be measured at length before one is declared the winner:
/// the first `fewest`, and those that may really be faster than the first (their times differ by
/// less than two standard errors of the difference), up to `most`.
size_t FinalistCount(std::span<const Contender> ranking, size_t fewest = 3, size_t most = 10);

}  // namespace atunner
