#include <gtest/gtest.h>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/real_device.h"
#include "atunner/measure/probe.h"

namespace atunner {
namespace {

TEST(Probe, FiguresArePossible) {
  const auto devices = ListRealDevices();
  if (!devices) GTEST_SKIP() << "[atunner] every test skipped: " << devices.error().what;
  auto compiler = MakeNvrtcCompiler();
  ASSERT_TRUE(compiler) << compiler.error().ToString();
  auto device = OpenRealDevice(0);
  ASSERT_TRUE(device) << device.error().ToString();
  const auto probed = Probe(**device, **compiler);
  ASSERT_TRUE(probed) << probed.error().ToString();
  for (const ProbedRate& rate : probed->rates) {
    EXPECT_GT(rate.measured, 0) << rate.name;
    if (rate.unit == "ns" || rate.unit == "us" || rate.stated == 0) continue;
    // A rate beyond the stated peak by more than clocks can explain is a broken probe, and so is a tenth of it.
    EXPECT_LT(rate.measured, 1.35 * rate.stated) << rate.name;
    EXPECT_GT(rate.measured, 0.1 * rate.stated) << rate.name;
  }
}

}  // namespace
}  // namespace atunner
