#include "atunner/device/device.h"

#include <gtest/gtest.h>

namespace atunner {
namespace {

TEST(ImpossibleSizes, LimitsOfCudaAreNamed) {
  const auto why = [](Dim3 grid, Dim3 block) {
    LaunchShape shape;
    shape.grid = grid;
    shape.block = block;
    return ImpossibleSizes(shape);
  };
  EXPECT_EQ(why({2147483647, 65535, 65535}, {1024, 1, 1}), "");
  EXPECT_EQ(why({1, 1, 1}, {16, 1, 64}), "");
  EXPECT_EQ(why({1, 0, 1}, {32, 1, 1}), "invalid grid of 1x0x1 blocks: no size may be zero");
  EXPECT_EQ(why({1, 1, 1}, {32, 1, 0}), "invalid block of 32x1x0 threads: no size may be zero");
  EXPECT_EQ(why({2147483648u, 1, 1}, {32, 1, 1}),
            "invalid grid of 2147483648x1x1 blocks: x is at most 2147483647");
  EXPECT_EQ(why({1, 65536, 1}, {32, 1, 1}),
            "invalid grid of 1x65536x1 blocks: y and z are at most 65535");
  EXPECT_EQ(why({1, 1, 65536}, {32, 1, 1}),
            "invalid grid of 1x1x65536 blocks: y and z are at most 65535");
  EXPECT_EQ(why({1, 1, 1}, {1025, 1, 1}),
            "invalid block of 1025x1x1 threads: a block has at most 1024 threads");
  // The product has 2^64 as a factor.
  EXPECT_EQ(why({1, 1, 1}, {2147483648u, 2147483648u, 4}),
            "invalid block of 2147483648x2147483648x4 threads: a block has at most 1024 threads");
  EXPECT_EQ(why({1, 1, 1}, {8, 1, 65}), "invalid block of 8x1x65 threads: z is at most 64");
}

TEST(Misfit, NumberAndSizesOfArgumentsAreCompared) {
  const std::vector<size_t> sizes = {8, 4};
  const KernelArg pointer = KernelArg::Address(4096);
  KernelArg count;
  count.size = 4;
  EXPECT_EQ(Misfit("scale", sizes, std::vector{pointer, count}), "");
  EXPECT_EQ(Misfit("scale", sizes, std::vector{pointer}), "'scale' takes 2 arguments, 1 are given");
  count.size = 8;  // a double for a float
  EXPECT_EQ(Misfit("scale", sizes, std::vector{pointer, count}),
            "argument 2 of 'scale' has 4 bytes, 8 are given");
}

}  // namespace
}  // namespace atunner
