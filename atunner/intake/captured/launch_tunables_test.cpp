#include "atunner/intake/captured/launch_tunables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/ptx/module.h"

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// x: index over the whole grid by x and y, and a grid-stride loop along x.
constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry strides(.param .u64 p) {
  .reg .b32 %b, %n, %g, %i, %s;
  mov.u32 %b, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mad.lo.s32 %i, %b, %n, 0;
  mov.u32 %g, %nctaid.x;
  mul.lo.s32 %s, %n, %g;
  ret;
}
.visible .entry plane(.param .u64 p) {
  .reg .b32 %b, %n, %i;
  mov.u32 %b, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mad.lo.s32 %i, %b, %n, 0;
  mov.u32 %b, %ctaid.y;
  mov.u32 %n, %ntid.y;
  mad.lo.s32 %i, %b, %n, 0;
  ret;
})";

KernelAccesses AccessesOf(const std::string& name, const Dim3& block) {
  return FindAccesses(*ptx::Parse(kPtx).value().Find(name), block);
}

UserKernel KernelOf(const GivenLaunch& given) {
  UserKernel kernel;
  kernel.plan.steps.resize(1);
  FixLaunch(kernel, given);
  return kernel;
}

int64_t At(const UserKernel& kernel, const Expr& expr, std::vector<Value> values) {
  const std::vector<std::string> names = kernel.space.Names();
  return expr.EvaluateInt(Bindings(kernel.spec.dims).Add(names, values)).value();
}

TEST(LaunchTunables, BothAxesOfAPlaneAreFree) {
  const GivenLaunch given{{40, 30, 1}, {16, 16, 1}, 2048};
  const KernelAccesses accesses = AccessesOf("plane", given.block);
  EXPECT_EQ(BlockObstacle(accesses, given), "");
  UserKernel kernel = KernelOf(given);
  FreeLaunch(kernel, accesses, given);
  EXPECT_THAT(kernel.space.Names(), ElementsAre("block_x", "block_y"));
  const LaunchStep& step = kernel.plan.steps[0];
  EXPECT_EQ(At(kernel, step.grid[0], {int64_t{64}, int64_t{4}}), 10);
  EXPECT_EQ(At(kernel, step.grid[1], {int64_t{64}, int64_t{4}}), 120);
  EXPECT_EQ(At(kernel, step.shared_bytes, {int64_t{64}, int64_t{4}}), 2048);
  Configuration large;
  large.values = {int64_t{256}, int64_t{8}};
  EXPECT_FALSE(kernel.space.Allows(large, {}).value());
}

TEST(LaunchTunables, AnAxisThatTheKernelDoesNotReadIsAnObstacle) {
  const GivenLaunch given{{40, 30, 1}, {16, 16, 1}, 0};
  EXPECT_THAT(BlockObstacle(AccessesOf("strides", given.block), given), HasSubstr("along y"));
}

TEST(LaunchTunables, GridsOfStrideLoopsAreFree) {
  const GivenLaunch given{{100, 1, 1}, {256, 1, 1}, 0};
  const KernelAccesses accesses = AccessesOf("strides", given.block);
  EXPECT_TRUE(accesses.strides_by_grid);
  EXPECT_FALSE(AccessesOf("plane", given.block).strides_by_grid);
  UserKernel kernel = KernelOf(given);
  FreeLaunch(kernel, accesses, given);
  EXPECT_THAT(kernel.space.Names(), ElementsAre("block_x", "grid_quarters"));
  const Expr& grid = kernel.plan.steps[0].grid[0];
  EXPECT_EQ(At(kernel, grid, {int64_t{256}, int64_t{4}}), 100) << "the program's own";
  EXPECT_EQ(At(kernel, grid, {int64_t{512}, int64_t{8}}), 100);
  EXPECT_EQ(At(kernel, grid, {int64_t{256}, int64_t{1}}), 25);
}

TEST(LaunchTunables, FixLaunchTakesItBack) {
  const GivenLaunch given{{100, 1, 1}, {256, 1, 1}, 0};
  UserKernel kernel = KernelOf(given);
  EXPECT_FALSE(FixLaunch(kernel, given));
  FreeLaunch(kernel, AccessesOf("strides", given.block), given);
  EXPECT_TRUE(FixLaunch(kernel, given));
  EXPECT_THAT(kernel.space.Names(), IsEmpty());
  EXPECT_THAT(kernel.space.constraints, IsEmpty());
  EXPECT_EQ(kernel.plan.steps[0].block[0].text(), "256");
}

TEST(LoopsWithoutPragma, AreTheInnermostOnes) {
  const std::string text = R"(__global__ void k(float* y, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) y[j] += i;
#pragma unroll
    for (int j = 0; j < 4; ++j) { y[j] += i; }
  }
  for (int i = 0; i < n; ++i) { y[i] = 1; }
  for (int i = 0; i < n; ++i) while (y[i] > 0) y[i] -= 1;
})";
  const CudaSyntax syntax = ParseCuda(text);
  std::vector<int> lines;
  for (const size_t loop : LoopsWithoutPragma(syntax, syntax.kernels.at(0)))
    lines.push_back(syntax.token(loop).line);
  EXPECT_THAT(lines, ElementsAre(3, 7));
}

}  // namespace
}  // namespace atunner
