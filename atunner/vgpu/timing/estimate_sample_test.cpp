// Which blocks of a launch a prediction executes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/device/profiles.h"
#include "atunner/vgpu/compiled_kernel_test.h"
#include "atunner/vgpu/timing/estimate.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::vgpu {
namespace {

/// A launch that adds up in memory is executed once, sample and the rest, and what it wrote is in
/// L2 for the next.
TEST(EstimateSample, SampledLaunchesAreCompleted) {
  VirtualGpu gpu(*FindProfile("H200"), 2);
  const CompiledModule compiled = CompiledKernel(
      gpu,
      ".reg .b32 %r<2>;\n.reg .b64 %to;\nld.param.u64 %to, [out];\n"
      "atom.global.add.u32 %r0, [%to], 1;\nld.global.u32 %r1, [%to+128];\nret;\n");
  const KernelResources& resources = compiled.kernels[0];
  const auto module = gpu.Load(compiled);
  ASSERT_TRUE(module) << module.error().ToString();
  const auto out = gpu.Allocate(1 << 20).value();
  const auto other = gpu.Allocate(1 << 20).value();
  std::vector<EstimateInput> seen;
  gpu.Observe([&](const EstimateInput& in) { seen.push_back(in); });
  const KernelArg args[] = {KernelArg::Address(out->address())};
  const KernelArg others[] = {KernelArg::Address(other->address())};
  for (const uint32_t cluster : {1u, 2u}) {
    const LaunchShape shape{{1000, 1, 1}, {1, 1, 1}, {cluster, 1, 1}, 0};
    ASSERT_TRUE(gpu.Fill(out->address(), 0, 4));
    const auto first = gpu.Predict(**module, resources, shape, args, {});
    ASSERT_TRUE(first) << first.error().ToString();
    if (cluster > 1) ASSERT_TRUE(gpu.Fill(out->address(), 0, 4));  // clusters begin anew
    ASSERT_TRUE(gpu.Complete(**module, "k", shape, args, first->blocks)->completed());
    uint32_t sum = 0;
    ASSERT_TRUE(gpu.CopyOut(std::as_writable_bytes(std::span(&sum, 1)), out->address()));
    EXPECT_EQ(sum, 1000u);
    const Predecessors earlier{{args[0]}, 1 << 20};
    const auto unrelated = gpu.Predict(**module, resources, shape, others, earlier);
    const auto next = gpu.Predict(**module, resources, shape, args, earlier);
    EXPECT_LT(unrelated->estimate.time_ns, first->estimate.time_ns)
        << "it does not wait for the host";
    EXPECT_LT(next->estimate.time_ns, unrelated->estimate.time_ns);
  }
  EXPECT_EQ(seen[0].known_bytes + seen[1].known_bytes, 0);
  EXPECT_EQ(seen[2].known_bytes, 1 << 20);
}

TEST(EstimateSample, OfBlocksWithAHugeTaskOneIsExecuted) {
  VirtualGpu gpu(*FindProfile("H200"), 2);
  const CompiledModule compiled = CompiledKernel(gpu, "ret;\n");
  const auto module = gpu.Load(compiled);
  ASSERT_TRUE(module) << module.error().ToString();
  const auto executed = [&](uint64_t bytes, uint32_t cluster) {
    const auto memory = gpu.Allocate(bytes).value();
    const KernelArg args[] = {KernelArg::Address(memory->address())};
    return gpu
        .Predict(**module, compiled.kernels[0], {{64, 1, 1}, {32, 1, 1}, {cluster, 1, 1}, 0}, args,
                 {})
        ->estimate.blocks_executed;
  };
  EXPECT_EQ(executed(1 << 20, 1), 10u);
  EXPECT_EQ(executed(uint64_t{1} << 30, 1), 10u);
  EXPECT_EQ(executed(uint64_t{16} << 30, 1), 1u);
  EXPECT_EQ(executed(uint64_t{16} << 30, 8), 8u) << "a cluster";
}

/// Two rows of blocks, of which the lower has nothing to do: as many of each are drawn.
TEST(EstimateSample, HoldsAsManyEmptyBlocksAsTheGrid) {
  VirtualGpu gpu(*FindProfile("A100"), 1);
  const CompiledModule compiled = CompiledKernel(
      gpu,
      ".reg .b32 %r<2>;\n.reg .pred %p;\n.reg .b64 %to;\nld.param.u64 %to, [out];\nmov.u32 %r0, "
      "%ctaid.y;\n"
      "setp.ne.u32 %p, %r0, 0;\n@%p bra END;\nst.global.u32 [%to], %r0;\nEND:\nret;\n");
  const auto module = gpu.Load(compiled);
  ASSERT_TRUE(module) << module.error().ToString();
  const auto out = gpu.Allocate(256).value();
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  gpu.Observe([&](const EstimateInput& in) {
    seen.emplace_back(in.counts.global.stores, in.blocks_executed);
  });
  for (const uint32_t width : {4000u, 4001u, 4167u}) {
    const KernelArg args[] = {KernelArg::Address(out->address())};
    ASSERT_TRUE(gpu.Predict(**module, compiled.kernels[0], {{width, 2, 1}, {1, 1, 1}, {1, 1, 1}, 0},
                            args, {}));
  }
  EXPECT_THAT(seen, testing::Each(testing::Pair(5, 10)));
}

}  // namespace
}  // namespace atunner::vgpu
