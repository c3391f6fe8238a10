#include "atunner/trace/timeline/intervals.h"

#include <algorithm>

namespace atunner::trace {

IntervalSet Union(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& i) { return i.begin >= i.end; });
  if (!std::ranges::is_sorted(intervals, {}, &Interval::begin))
    std::ranges::sort(intervals, {}, &Interval::begin);
  size_t kept = 0;
  for (const Interval next : intervals) {
    if (kept > 0 && next.begin <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    else
      intervals[kept++] = next;
  }
  intervals.resize(kept);
  return intervals;
}

IntervalSet Intersect(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) common.push_back(both);
    (a[i].end < b[j].end ? i : j)++;
  }
  return common;
}

IntervalSet Subtract(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet left;
  size_t j = 0;
  for (Interval piece : a) {
    while (j < b.size() && b[j].end <= piece.begin) ++j;
    for (size_t k = j; k < b.size() && b[k].begin < piece.end; ++k) {
      if (piece.begin < b[k].begin) left.push_back({piece.begin, b[k].begin});
      piece.begin = std::max(piece.begin, std::min(piece.end, b[k].end));
    }
    if (piece.begin < piece.end) left.push_back(piece);
  }
  return left;
}

IntervalSet Clip(const IntervalSet& set, Interval window) {
  IntervalSet inside;
  auto at = std::ranges::upper_bound(set, window.begin, {}, &Interval::end);
  for (; at != set.end() && at->begin < window.end; ++at) {
    const Interval part{std::max(at->begin, window.begin), std::min(at->end, window.end)};
    if (part.begin < part.end) inside.push_back(part);
  }
  return inside;
}

int64_t Length(const IntervalSet& set) {
  int64_t total = 0;
  for (const Interval& interval : set) total += interval.length();
  return total;
}

}  // namespace atunner::trace
