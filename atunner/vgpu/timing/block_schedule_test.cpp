#include "atunner/vgpu/timing/block_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace atunner::vgpu {
namespace {

/// 4 SMs with 2 blocks each; a block takes 100 cycles alone and keeps the pipes busy for half of
/// them. With an infinite exponent the larger of latency and throughput counts.
SmModel Model(double sharpness = 1e3) {
  SmModel model;
  model.sms = 4;
  model.resident = 2;
  model.path = 100;
  model.demand = 50;
  model.sharpness = [=](uint64_t) { return sharpness; };
  return model;
}

std::vector<BlockShare> Alike(size_t blocks) { return std::vector<BlockShare>(blocks); }

TEST(BlockSchedule, EqualBlocksRunInWaves) {
  EXPECT_NEAR(Makespan(Alike(1), Model()), 100, 0.2);
  EXPECT_NEAR(Makespan(Alike(8), Model()), 100, 0.2);
  EXPECT_NEAR(Makespan(Alike(9), Model()), 200, 0.4);
  EXPECT_NEAR(Makespan(Alike(8 * 100), Model()), 100 * 100, 20);
  EXPECT_EQ(Makespan({}, Model()), 0);
}

/// k equal blocks on an SM take what the overlap of one block's latency with k blocks' work gives.
TEST(BlockSchedule, EqualBlocksOverlapAsWavesDo) {
  SmModel model = Model();
  model.sharpness = [](uint64_t blocks) { return 1 + 0.5 * static_cast<double>(blocks); };
  const auto together = [](double a, double b, double p) {
    return std::pow(std::pow(a, p) + std::pow(b, p), 1 / p);
  };
  EXPECT_NEAR(Makespan(Alike(4), model), together(100, 50, 1.5), 0.1);
  EXPECT_NEAR(Makespan(Alike(8), model), together(100, 100, 2), 0.1);
  model.beside = 90;  // two blocks keep the tensor cores busy for longer
  EXPECT_NEAR(Makespan(Alike(8), model), 180, 0.1);
}

TEST(BlockSchedule, OneBlockThatDoesAllRunsAlone) {
  std::vector<BlockShare> blocks(8000, BlockShare{0, 0});
  blocks[4001] = {8000, 8000};
  EXPECT_NEAR(Makespan(blocks, Model()), 8000 * 100, 8000);
}

/// The last block starts when all others have ended; the first overlaps with them.
TEST(BlockSchedule, AHeavyBlockCostsMoreAtTheEnd) {
  std::vector<BlockShare> first(800), last(800);
  first.front() = last.back() = {50, 50};
  const double even = Makespan(Alike(800), Model());
  EXPECT_NEAR(Makespan(first, Model()), even, even * 0.1);
  EXPECT_NEAR(Makespan(last, Model()), even + 49 * 100, even * 0.05);
}

/// Twice the work takes twice the time, whatever its distribution.
TEST(BlockSchedule, ScalesWithWork) {
  std::vector<BlockShare> blocks;
  for (int i = 0; i < 300; ++i) {
    const auto share = static_cast<float>(i % 7 + 1);
    blocks.push_back({share, share});
  }
  const double once = Makespan(blocks, Model(2));
  SmModel twice = Model(2);
  twice.path *= 2;
  twice.demand *= 2;
  EXPECT_NEAR(Makespan(blocks, twice), 2 * once, once * 1e-3);
  double work = 0, longest = 0;
  for (const BlockShare& block : blocks) {
    work += block.work * 50;
    longest = std::max<double>(longest, block.path * 100);
  }
  EXPECT_GE(once, work / 4) << "the pipes of four SMs";
  EXPECT_LE(once, work / 4 * 2 + 2 * longest);
}

TEST(BlockSchedule, BlocksWithoutWorkEnd) {
  const std::vector<BlockShare> empty(100000, BlockShare{0, 0});
  EXPECT_LT(Makespan(empty, Model()), 100000.0);
}

}  // namespace
}  // namespace atunner::vgpu
