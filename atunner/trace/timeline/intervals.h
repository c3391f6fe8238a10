// Sets of points in time. All totals are lengths of such sets: two kernels that run at the same
// time keep a GPU busy once, so durations must not be added.
#pragma once

#include <cstdint>
#include <vector>

namespace atunner::trace {

/// Half-open: [begin, end), nanoseconds.
struct Interval {
  int64_t begin = 0, end = 0;
  int64_t length() const { return end - begin; }
  bool operator==(const Interval&) const = default;
};

/// Ascending, disjoint, not touching, none empty.
using IntervalSet = std::vector<Interval>;

/// The points that lie in any of the intervals, which may be in any order and overlap.
IntervalSet Union(std::vector<Interval> intervals);
IntervalSet Intersect(const IntervalSet& a, const IntervalSet& b);
/// The points of `a` that are not in `b`.
IntervalSet Subtract(const IntervalSet& a, const IntervalSet& b);
/// The part of `set` inside `window`. Takes logarithmic time plus the size of the result.
IntervalSet Clip(const IntervalSet& set, Interval window);
int64_t Length(const IntervalSet& set);

}  // namespace atunner::trace
