// ComputeOccupancy against the driver's calculator, for kernels of many register counts and random
// launches.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "atunner/base/random.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"

namespace atunner {
namespace {

TEST(OccupancyOnTheGpu, IsWhatTheDriverSays) {
  const auto devices = ListRealDevices();
  auto compiler = MakeNvrtcCompiler();
  if (!devices || !compiler) {
    std::puts("[atunner] every test skipped");
    GTEST_SKIP() << (devices ? compiler.error().ToString() : devices.error().ToString());
  }
  auto device = OpenRealDevice(devices->front().index).value();
  Random random(5);
  int compared = 0;
  for (int words : {1, 8, 16, 24, 32, 48, 64, 96, 128, 160, 200}) {
    // Values that are all alive at once make a kernel of about this many registers.
    const std::string n = std::to_string(words);
    CompileRequest request;
    request.source.text =
        "extern \"C\" __global__ void k(float* x, int m) {\n  extern __shared__ float s[];\n  "
        "float v[" +
        n + "];\n#pragma unroll\n  for (int i = 0; i < " + n +
        "; ++i) v[i] = x[threadIdx.x + i * m];\n  __syncthreads();\n  float t = s[threadIdx.x];\n"
        "  for (int k = 0; k < m; ++k) {\n#pragma unroll\n    for (int i = 0; i < " +
        n + "; ++i) v[i] = v[i] * t + v[(i + 1) % " + n +
        "];\n  }\n#pragma unroll\n  for (int i = 0; i < " + n +
        "; ++i) x[threadIdx.x + i * m] = v[i];\n}\n";
    request.entries = {"k"};
    request.arch = device->arch();
    const CompileOutcome outcome = (*compiler)->Compile(request).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error;
    const auto module = device->Load(*outcome.module).value();
    const KernelResources& resources = *outcome.module->Find("k");
    for (int i = 0; i < 40; ++i) {
      LaunchShape shape;
      shape.block.x = static_cast<uint32_t>(1 + random.Below(resources.max_threads));
      if (i % 2)
        shape.dynamic_shared_bytes = static_cast<uint32_t>(
            random.Below(static_cast<uint64_t>(device->profile().shared_per_block) + 1));
      const Occupancy ours = ComputeOccupancy(device->profile(), resources, shape);
      EXPECT_EQ(ours.blocks_per_sm, device->DriverOccupancy(*module, "k", shape).value())
          << resources.registers << " registers, " << shape.block.x << " threads, "
          << shape.dynamic_shared_bytes << " bytes; " << ours.limiter;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 440);
}

}  // namespace
}  // namespace atunner
