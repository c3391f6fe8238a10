#include "atunner/verify/own_size/own_size_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace atunner {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Lt;

TEST(SampleBlocks, HasTheEndsAndRandomBlocksOfAllParts) {
  const auto blocks = SampleBlocks({100, 10, 10}, 24, 7);
  EXPECT_THAT(blocks, Contains(0u));
  EXPECT_THAT(blocks, Contains(9999u));
  EXPECT_THAT(blocks, Each(Lt(10'000u)));
  EXPECT_GE(blocks.size(), 22u);
  EXPECT_EQ(std::set<uint64_t>(blocks.begin(), blocks.end()).size(), blocks.size());
  EXPECT_NE(blocks, SampleBlocks({100, 10, 10}, 24, 8)) << "another seed, other blocks";
  EXPECT_THAT(SampleBlocks({3, 1, 1}, 24, 7), ElementsAre(0, 1, 2));
}

TEST(BlocksBeside, AreThoseOfTheSamePartOfAnotherGrid) {
  EXPECT_THAT(BlocksBeside({5}, {100, 1, 1}, {400, 1, 1}, 96), ElementsAre(20, 21, 22, 23));
  EXPECT_THAT(BlocksBeside({5}, {100, 1, 1}, {50, 1, 1}, 96), ElementsAre(2));
  // Block (1, 2) of 4 × 4 is blocks (2..3, 4..5) of 8 × 8.
  EXPECT_THAT(BlocksBeside({9}, {4, 4, 1}, {8, 8, 1}, 96), ElementsAre(34, 35, 42, 43));
  EXPECT_EQ(BlocksBeside({9}, {4, 4, 1}, {800, 800, 1}, 96).size(), 96u);
}

TEST(OwnSizeRun, SumsGrowWithTheGrid) {
  OwnSizeRun run;
  run.blocks = 100;
  run.outcome.blocks_executed = 4;
  run.outcome.warp_instructions = 80;
  run.written = {{{0, 10}, {20, 30}}, {{5, 9}}};
  EXPECT_EQ(run.WholeWork(), 2000);
  EXPECT_EQ(run.WholeElements(), 600);
  EXPECT_FALSE(run.whole());
}

}  // namespace
}  // namespace atunner
