// Textures on a real GPU: what the virtual one is tested against is what hardware does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "atunner/device/real_device.h"
#include "atunner/vgpu/conformance/texture_cases.h"

namespace atunner::vgpu {
namespace {

TEST(TexturesOnTheGpu, AgreeWithTheCases) {
  const auto devices = ListRealDevices();
  if (!devices) {
    std::puts("[atunner] every test skipped");
    GTEST_SKIP() << devices.error().ToString();
  }
  const auto device = OpenRealDevice(devices->front().index).value();
  for (size_t i = 0; i < TextureCaseNames().size(); ++i)
    EXPECT_EQ(CheckTextureCase(*device, i), "") << i;
}

}  // namespace
}  // namespace atunner::vgpu
