// Who may be the best, given how well each is known.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace atunner {

struct Contender {
  double time = 0;
  double relative_error = 0;  ///< standard error over the time
};

/// How many of these, best first, are worth measuring at length before one is declared the winner:
/// the first `fewest`, and as many more as may be faster than the first in truth (their times
/// differ by less than two standard errors of the difference), up to `most`.
size_t FinalistCount(std::span<const Contender> ranking, size_t fewest = 3, size_t most = 10);

}  // namespace atunner
