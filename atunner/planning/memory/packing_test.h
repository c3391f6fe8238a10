// Instances whose best capacity is known, for tests and the benchmark.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/planning/memory/buffers.h"

namespace atunner::planning {

/// Cuts a rectangle of `duration` times and `capacity` bytes into `count` buffers by guillotine
/// cuts, so that they fill it without slack: the capacity is the lower bound, and it can be
/// reached.
inline std::vector<Buffer> GuillotinePacking(size_t count, int64_t duration, int64_t capacity,
                                             Random& random) {
  std::vector<Buffer> pieces{{0, duration, capacity}};
  for (size_t tries = 0; pieces.size() < count && tries < 100 * count; ++tries) {
    // Larger pieces are cut first, with some chance.
    size_t at = random.Below(pieces.size());
    const auto area = [&](size_t i) {
      return static_cast<double>(pieces[i].end - pieces[i].begin) *
             static_cast<double>(pieces[i].size);
    };
    for (int i = 0; i < 3; ++i) {
      const size_t other = random.Below(pieces.size());
      if (area(other) > area(at)) at = other;
    }
    Buffer& piece = pieces[at];
    Buffer rest = piece;
    const int64_t length = piece.end - piece.begin;
    if (random.Below(2) == 0 && length > 1) {
      const auto cut = static_cast<int64_t>(1 + random.Below(static_cast<uint64_t>(length - 1)));
      piece.end = rest.begin = piece.begin + cut;
    } else if (piece.size > 1) {
      const auto cut = static_cast<int64_t>(1 +
                                            random.Below(static_cast<uint64_t>(piece.size - 1)));
      rest.size = piece.size - cut;
      piece.size = cut;
    } else {
      continue;
    }
    pieces.push_back(rest);
  }
  for (size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random.Below(i)]);
  return pieces;
}

inline std::vector<Buffer> RandomBuffers(size_t count, int64_t times, int64_t largest,
                                         Random& random) {
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<int64_t>(random.Below(static_cast<uint64_t>(times)));
    const auto length = static_cast<int64_t>(1 + random.Below(static_cast<uint64_t>(times) / 2));
    buffers.push_back({begin, begin + length,
                       static_cast<int64_t>(random.Below(static_cast<uint64_t>(largest) + 1))});
  }
  return buffers;
}

}  // namespace atunner::planning
