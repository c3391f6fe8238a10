#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "atunner/planning/memory/greedy_placement.h"
#include "atunner/planning/memory/memory_plan.h"
#include "atunner/planning/memory/order_search.h"
#include "atunner/planning/memory/packing_test.h"
#include "atunner/planning/memory/skyline_search.h"

namespace atunner::planning {
namespace {

bool Never() { return false; }

/// Every pair, one by one.
bool OverlapsAnywhere(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (buffers[i].size > 0 && buffers[j].size > 0 && buffers[i].Overlaps(buffers[j]) &&
          offsets[i] < offsets[j] + buffers[j].size && offsets[j] < offsets[i] + buffers[i].size)
        return true;
  return std::ranges::any_of(offsets, [](int64_t offset) { return offset < 0; });
}

int64_t BruteBound(const std::vector<Buffer>& buffers) {
  int64_t most = 0;
  for (const Buffer& at : buffers) {
    int64_t live = 0;
    for (const Buffer& other : buffers)
      if (other.begin <= at.begin && at.begin < other.end) live += other.size;
    most = std::max(most, live);
  }
  return most;
}

/// The best peak over all orders of placing each buffer as low as possible on those before it; some
/// order gives the optimum.
int64_t BestPeak(const std::vector<Buffer>& buffers) {
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  int64_t best = INT64_MAX;
  do {
    best = std::min(best, PlaceInOrder(buffers, order, Fit::kFirst).peak);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

MemoryProblem ProblemOf(std::vector<Buffer> buffers) {
  MemoryProblem problem;
  for (size_t i = 0; i < buffers.size(); ++i) problem.ids.push_back(std::to_string(i));
  problem.buffers = std::move(buffers);
  return problem;
}

TEST(Buffers, TheBoundIsTheLargestSumOfLiveSizes) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const auto buffers = RandomBuffers(1 + random.Below(30), 20, 9, random);
    EXPECT_EQ(LowerBound(buffers), BruteBound(buffers));
  }
  EXPECT_EQ(LowerBound({}), 0);
}

TEST(Buffers, ValidityAgreesWithAllPairs) {
  Random random(2);
  int valid = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto buffers = RandomBuffers(1 + random.Below(6), 8, 3, random);
    std::vector<int64_t> offsets;
    for (size_t j = 0; j < buffers.size(); ++j)
      offsets.push_back(static_cast<int64_t>(random.Below(14)) - (random.Below(40) == 0 ? 3 : 0));
    bool zero_below = false;  // a buffer without bytes may lie anywhere
    for (size_t j = 0; j < buffers.size(); ++j)
      zero_below |= buffers[j].size == 0 && offsets[j] < 0;
    if (zero_below) continue;
    EXPECT_EQ(IsValid(buffers, offsets), !OverlapsAnywhere(buffers, offsets));
    valid += IsValid(buffers, offsets) ? 1 : 0;
  }
  EXPECT_GT(valid, 300);
  EXPECT_LT(valid, 1900);
}

TEST(Greedy, NeverOverlaps) {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const auto buffers = RandomBuffers(random.Below(60), 30, 100, random);
    for (const auto& order : GreedyOrders(buffers)) {
      for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
        const Placement placement = PlaceInOrder(buffers, order, fit);
        EXPECT_FALSE(OverlapsAnywhere(buffers, placement.offsets));
        EXPECT_EQ(placement.peak, PeakOf(buffers, placement.offsets));
      }
    }
  }
}

TEST(OrderSearch, KeepsPlacementsValidAndNeverGetsWorse) {
  Random random(4);
  for (int i = 0; i < 20; ++i) {
    const auto buffers = RandomBuffers(40, 30, 100, random);
    const auto order = GreedyOrders(buffers)[0];
    const Placement placement = ImproveOrder(buffers, order, LowerBound(buffers), 200, 1, Never);
    EXPECT_FALSE(OverlapsAnywhere(buffers, placement.offsets));
    EXPECT_LE(placement.peak, PlaceInOrder(buffers, order, Fit::kBest).peak);
  }
}

TEST(Skyline, AgreesWithAllOrdersOnSmallSets) {
  Random random(5);
  for (int i = 0; i < 150; ++i) {
    const auto buffers = RandomBuffers(2 + random.Below(5), 8, 6, random);
    const int64_t best = BestPeak(buffers);
    const SkylineResult found = SearchCapacity(buffers, best, 1'000'000, 1, Never);
    ASSERT_EQ(found.end, SearchEnd::kFound);
    EXPECT_FALSE(OverlapsAnywhere(buffers, found.offsets));
    EXPECT_LE(PeakOf(buffers, found.offsets), best);
    if (best > 0)
      EXPECT_EQ(SearchCapacity(buffers, best - 1, 1'000'000, 1, Never).end, SearchEnd::kImpossible);
  }
}

TEST(Skyline, ProvesThatTheBoundIsOutOfReach) {
  // Found by a search over random sets: at most 9 bytes are live, but 10 are needed.
  const std::vector<Buffer> buffers{{2, 6, 5},  {1, 3, 4},  {10, 14, 4}, {3, 9, 1},
                                    {5, 10, 3}, {9, 13, 5}, {7, 10, 1}};
  ASSERT_EQ(LowerBound(buffers), 9);
  EXPECT_EQ(SearchCapacity(buffers, 9, 1'000'000, 1, Never).end, SearchEnd::kImpossible);
  EXPECT_EQ(SearchCapacity(buffers, 10, 1'000'000, 1, Never).end, SearchEnd::kFound);
  EXPECT_EQ(BestPeak(buffers), 10);
}

TEST(Skyline, FillsPerfectPackings) {
  Random random(6);
  for (const size_t count : {20, 80, 150, 300}) {
    const auto buffers = GuillotinePacking(count, 1000, 1 << 20, random);
    ASSERT_EQ(buffers.size(), count);
    ASSERT_EQ(LowerBound(buffers), 1 << 20);
    const SkylineResult result = SearchCapacity(buffers, 1 << 20, 2'000'000, 1, Never);
    ASSERT_EQ(result.end, SearchEnd::kFound) << count;
    EXPECT_FALSE(OverlapsAnywhere(buffers, result.offsets));
    EXPECT_EQ(PeakOf(buffers, result.offsets), 1 << 20);
  }
}

TEST(Skyline, StopsWhenAsked) {
  Random random(7);
  const auto buffers = GuillotinePacking(200, 50, 1 << 20, random);
  EXPECT_EQ(SearchCapacity(buffers, 1 << 20, 1'000'000, 1, [] { return true; }).end,
            SearchEnd::kStopped);
}

TEST(Plan, PlacesComponentsApart) {
  std::vector<Buffer> buffers{{0, 2, 4}, {1, 3, 2}, {2, 3, 4}, {5, 9, 6}, {100, 101, 1}};
  const MemoryPlan plan = PlanBuffers(ProblemOf(buffers), 0, 5, 1);
  EXPECT_EQ(plan.bound, 6);
  EXPECT_TRUE(plan.optimal());
  EXPECT_DOUBLE_EQ(plan.Utilization(), 1);
  EXPECT_FALSE(OverlapsAnywhere(buffers, plan.placement.offsets));
  EXPECT_EQ(PlacementCsv(plan).substr(0, 35), "id,lower,upper,size,offset\n0,0,2,4,");
}

TEST(Plan, ReachesTheBoundOfPerfectPackings) {
  Random random(8);
  for (int i = 0; i < 5; ++i) {
    const auto buffers = GuillotinePacking(150, 400, 1'000'000, random);
    const MemoryPlan plan = PlanBuffers(ProblemOf(buffers), 0, 20, 1);
    EXPECT_FALSE(OverlapsAnywhere(buffers, plan.placement.offsets));
    EXPECT_TRUE(plan.optimal());
    EXPECT_GE(plan.greedy_peak, plan.placement.peak);
  }
}

TEST(Plan, StopsAtTheCapacity) {
  Random random(9);
  const auto buffers = GuillotinePacking(150, 400, 1'000'000, random);
  const MemoryPlan plan = PlanBuffers(ProblemOf(buffers), 3'000'000, 20, 1);
  EXPECT_LE(plan.placement.peak, 3'000'000);
  EXPECT_EQ(plan.placement.peak, plan.greedy_peak);
}

TEST(Plan, ExplainsWhatTheAllocatorLost) {
  MemoryProblem problem = ProblemOf({{0, 2, 4'000'000'000}, {2, 4, 3'000'000'000}});
  problem.observed = {8'000'000'000, 4'000'000'000, "PyTorch's caching allocator"};
  const auto lines = Explain(PlanBuffers(problem, 0, 1, 1));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "PyTorch's caching allocator held 8.000 GB when 4.000 GB were in use: 4.000 GB (50 %) "
            "were free pieces between live buffers or cached blocks");
  EXPECT_EQ(lines[1], "planned placement needs 4.000 GB: 50.0 % less");
}

TEST(Plan, RefusesWhatCannotBePlaced) {
  MemoryProblem problem = ProblemOf({{0, 2, 4}, {3, 3, 1}});
  ASSERT_FALSE(CheckBuffers(problem));
  EXPECT_EQ(CheckBuffers(problem).error().what, "buffer 1 has an empty lifetime");
  problem.buffers[1] = {0, 1, -1};
  EXPECT_EQ(CheckBuffers(problem).error().what, "buffer 1 has a negative size");
  problem.buffers = {{0, 1, INT64_MAX / 2}, {0, 1, INT64_MAX / 2}};
  EXPECT_FALSE(CheckBuffers(problem));
}

}  // namespace
}  // namespace atunner::planning
