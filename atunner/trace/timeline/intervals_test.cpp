#include "atunner/trace/timeline/intervals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <string>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/trace/timeline/string_table.h"

namespace atunner::trace {
namespace {

constexpr size_t kPoints = 64;
using Points = std::bitset<kPoints>;

Points PointsOf(const std::vector<Interval>& intervals) {
  Points points;
  for (const Interval& i : intervals)
    for (int64_t at = i.begin; at < i.end; ++at) points.set(static_cast<size_t>(at));
  return points;
}

std::vector<Interval> Some(Random& random) {
  std::vector<Interval> intervals;
  for (uint64_t n = random.Below(12); n > 0; --n) {
    const auto begin = static_cast<int64_t>(random.Below(kPoints));
    const auto end = begin + static_cast<int64_t>(random.Below(kPoints - begin + 1));
    intervals.push_back({begin, random.Below(3) == 0 ? std::min<int64_t>(end, begin + 2) : end});
  }
  return intervals;
}

bool IsSet(const IntervalSet& set) {
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i].begin >= set[i].end || (i > 0 && set[i - 1].end >= set[i].begin)) return false;
  return true;
}

TEST(Intervals, AgreeWithSetsOfPoints) {
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    const auto a = Some(random), b = Some(random);
    const IntervalSet x = Union(a), y = Union(b);
    const Interval window{static_cast<int64_t>(random.Below(40)), 50};
    EXPECT_TRUE(IsSet(x));
    EXPECT_EQ(PointsOf(x), PointsOf(a));
    EXPECT_EQ(PointsOf(Intersect(x, y)), PointsOf(a) & PointsOf(b));
    EXPECT_EQ(PointsOf(Subtract(x, y)), PointsOf(a) & ~PointsOf(b));
    EXPECT_EQ(PointsOf(Clip(x, window)), PointsOf(a) & PointsOf({window}));
    EXPECT_EQ(Length(x), static_cast<int64_t>(PointsOf(a).count()));
    EXPECT_TRUE(IsSet(Subtract(x, y)));
  }
}

TEST(StringTable, InternsEachTextOnce) {
  StringTable table;
  EXPECT_EQ(table.Intern(""), 0u);
  std::vector<uint32_t> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(table.Intern("name " + std::to_string(i)));
  const uint32_t large = table.Intern(std::string(200'000, 'x'));
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(table.Intern("name " + std::to_string(i)), ids[static_cast<size_t>(i)]);
    EXPECT_EQ(table[ids[static_cast<size_t>(i)]], "name " + std::to_string(i));
  }
  EXPECT_EQ(table[large].size(), 200'000u);
  EXPECT_EQ(table.size(), 5002u);
}

}  // namespace
}  // namespace atunner::trace
