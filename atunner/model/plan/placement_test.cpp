#include "atunner/model/plan/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "atunner/base/random.h"

namespace atunner {
namespace {

bool LiveTogether(const BufferLifetime& a, const BufferLifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

bool Overlap(const Placement& placement, const std::vector<BufferLifetime>& buffers, size_t a,
             size_t b) {
  return placement.offsets[a] < placement.offsets[b] + buffers[b].bytes &&
         placement.offsets[b] < placement.offsets[a] + buffers[a].bytes;
}

TEST(Placement, BuffersThatDoNotLiveTogetherShareMemory) {
  // x0 → x1 → x2 → x3: two live at a time.
  const std::vector<BufferLifetime> chain = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {10, 3, 3}};
  const Placement placement = PlaceBuffers(chain, 256);
  EXPECT_EQ(placement.bytes, 2048u);
  EXPECT_EQ(placement.offsets[0], placement.offsets[2]);
  EXPECT_NE(placement.offsets[0], placement.offsets[1]);
  EXPECT_EQ(PlaceBuffers({}, 256).bytes, 0u);
}

/// Random lifetimes, compared pair by pair.
TEST(Placement, BuffersThatLiveTogetherNeverOverlap) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<BufferLifetime> buffers;
    const size_t count = 1 + random.Below(40);
    for (size_t i = 0; i < count; ++i) {
      const size_t first = random.Below(20);
      buffers.push_back({1 + random.Below(5000), first, first + random.Below(6)});
    }
    const Placement placement = PlaceBuffers(buffers, 256);
    uint64_t end = 0, sum = 0;
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(placement.offsets[i] % 256, 0u);
      end = std::max(end, placement.offsets[i] + buffers[i].bytes);
      sum += (buffers[i].bytes + 255) / 256 * 256;
      for (size_t j = 0; j < i; ++j) {
        if (LiveTogether(buffers[i], buffers[j]))
          EXPECT_FALSE(Overlap(placement, buffers, i, j)) << round << ": " << i << ", " << j;
      }
    }
    EXPECT_LE(end, placement.bytes);
    EXPECT_LE(placement.bytes, sum);
    EXPECT_GE(placement.bytes, LeastBytes(buffers, 256));
  }
}

TEST(Placement, AResidualNetworkNeedsLittleMoreThanTheLeast) {
  // The trunk lives over the branch, and until the next trunk is written.
  std::vector<BufferLifetime> buffers;
  for (size_t i = 0; i < 10; ++i) {
    buffers.push_back({4096, 3 * i, 3 * i + 3});
    buffers.push_back({8192, 3 * i + 1, 3 * i + 2});
  }
  EXPECT_EQ(LeastBytes(buffers, 256), 12288u);
  EXPECT_EQ(PlaceBuffers(buffers, 256).bytes, 16384u);
}

}  // namespace
}  // namespace atunner
