#include "atunner/intake/check_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

UserKernel Kernel(int64_t n, const char* grid, int64_t largest_block = 256) {
  UserKernel kernel;
  kernel.spec.dims = {{"n", n}};
  kernel.spec.args.push_back({.name = "x",
                              .role = Role::kInOut,
                              .dtype = DType::kFloat32,
                              .shape = {Expr::MustParse("n")},
                              .value = {},
                              .fill = {}});
  kernel.space.parameters.push_back({"block", {int64_t{32}, largest_block}, ""});
  LaunchStep step;
  step.entry = "k";
  step.grid[0] = Expr::MustParse(grid);
  step.block[0] = Expr::MustParse("block");
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Scalar(DType::kInt32, Expr::MustParse("n"))};
  kernel.plan.steps = {step};
  kernel.source.text = "void k(float* x, int n) {}";
  return kernel;
}

std::vector<int64_t> SizesOf(const UserKernel& kernel) {
  std::vector<int64_t> sizes;
  for (const Dims& dims : HalvedCheckSizes(kernel, FreeSizesOf(kernel)))
    sizes.push_back(dims.at("n"));
  return sizes;
}

TEST(CheckSizes, AreTwoHalvedSizes) {
  EXPECT_THAT(SizesOf(Kernel(1 << 22, "ceil_div(n, block)")), ElementsAre(1 << 14, 1 << 15));
  EXPECT_THAT(SizesOf(Kernel(3000 << 10, "ceil_div(n, block)")), ElementsAre(96000))
      << "375 blocks of 256";
  EXPECT_THAT(SizesOf(Kernel(3000 << 10, "ceil_div(n, block)", 32)), ElementsAre(12000, 24000));
}

TEST(CheckSizes, KeepWholeBlocksOfEveryConfiguration) {
  EXPECT_THAT(SizesOf(Kernel(99 << 13, "ceil_div(n, block)", 1024)), ElementsAre(99 << 10));
  EXPECT_THAT(SizesOf(Kernel(99 << 13, "n // block", 32)), ElementsAre(99 << 7, 99 << 8));
  EXPECT_THAT(SizesOf(Kernel(4095 * 1025, "ceil_div(n, block)")), IsEmpty()) << "odd";
}

TEST(CheckSizes, NeedASizeThatTheKernelKnowsAndTheGridFollows) {
  EXPECT_THAT(SizesOf(Kernel(1 << 22, "1024")), IsEmpty());
  UserKernel unknown = Kernel(1 << 22, "ceil_div(n, block)");
  unknown.plan.steps[0].args.pop_back();
  EXPECT_THAT(SizesOf(unknown), IsEmpty());
  UserKernel constant = Kernel(1 << 22, "ceil_div(n, block)");
  constant.source.text = "constexpr int kCount = 4194304;";
  EXPECT_THAT(SizesOf(constant), IsEmpty());
  constant.source.text = "constexpr int k14194304 = 41943040;";
  EXPECT_EQ(SizesOf(constant).size(), 2u);
}

TEST(CheckSizes, SmallProblemsHaveNone) {
  EXPECT_THAT(SizesOf(Kernel(30'000, "ceil_div(n, block)")), IsEmpty());
}

}  // namespace
}  // namespace atunner
