// Which blocks of a launch a prediction executes.
#include <gtest/gtest.h>

#include "atunner/device/profiles.h"
#include "atunner/vgpu/estimate.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::vgpu {
namespace {

/// A launch that adds up in memory is executed once, sample and the rest, and what it wrote is in L2 for the next.
TEST(EstimateSample, SampledLaunchesAreCompleted) {
  VirtualGpu gpu(*FindProfile("H200"), 2);
  CompiledModule compiled;
  compiled.arch = gpu.arch();
  compiled.ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 %r<2>;\n.reg .b64 %to;\nld.param.u64 %to, [out];\natom.global.add.u32 %r0, [%to], 1;\nld.global.u32 "
      "%r1, [%to+128];\nret;\n}\n";
  KernelResources resources;
  resources.entry = resources.mangled = "k";
  compiled.kernels = {resources};
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
    EXPECT_LT(unrelated->estimate.time_ns, first->estimate.time_ns) << "it does not wait for the host";
    EXPECT_LT(next->estimate.time_ns, unrelated->estimate.time_ns);
  }
  EXPECT_EQ(seen[0].known_bytes + seen[1].known_bytes, 0);
  EXPECT_EQ(seen[2].known_bytes, 1 << 20);
}

TEST(EstimateSample, OfBlocksWithAHugeTaskOneIsExecuted) {
  VirtualGpu gpu(*FindProfile("H200"), 2);
  CompiledModule compiled;
  compiled.arch = gpu.arch();
  compiled.ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\nret;\n}\n";
  KernelResources resources;
  resources.entry = resources.mangled = "k";
  compiled.kernels = {resources};
  const auto module = gpu.Load(compiled);
  ASSERT_TRUE(module) << module.error().ToString();
  const auto executed = [&](uint64_t bytes, uint32_t cluster) {
    const auto memory = gpu.Allocate(bytes).value();
    const KernelArg args[] = {KernelArg::Address(memory->address())};
    return gpu.Predict(**module, resources, {{64, 1, 1}, {32, 1, 1}, {cluster, 1, 1}, 0}, args, {})
        ->estimate.blocks_executed;
  };
  EXPECT_EQ(executed(1 << 20, 1), 10u);
  EXPECT_EQ(executed(uint64_t{1} << 30, 1), 10u);
  EXPECT_EQ(executed(uint64_t{16} << 30, 1), 1u);
  EXPECT_EQ(executed(uint64_t{16} << 30, 8), 8u) << "a cluster";
}

}  // namespace
}  // namespace atunner::vgpu
