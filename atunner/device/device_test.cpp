#include "atunner/device/device.h"

#include <gtest/gtest.h>

namespace atunner {
namespace {

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
