#include <gtest/gtest.h>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"
#include "atunner/measure/calibrate.h"
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
    // A rate above the stated peak by more than clocks explain, or below a tenth of it, means that
    // the probe is broken.
    EXPECT_LT(rate.measured, 1.35 * rate.stated) << rate.name;
    EXPECT_GT(rate.measured, 0.1 * rate.stated) << rate.name;
  }
}

TEST(Calibrate, ConstantsArePossible) {
  const auto devices = ListRealDevices();
  if (!devices) GTEST_SKIP() << "[atunner] every test skipped: " << devices.error().what;
  auto compiler = MakeNvrtcCompiler();
  ASSERT_TRUE(compiler) << compiler.error().ToString();
  auto device = OpenRealDevice(0);
  ASSERT_TRUE(device) << device.error().ToString();
  const auto made = Calibrate(**device, **compiler, (*device)->profile());
  ASSERT_TRUE(made) << made.error().ToString();
  EXPECT_NE(made->source, "not calibrated");
  const Calibration expected = Calibration::Expected((*device)->profile());
  // A result more than a factor of four from the table's value means that the benchmark is broken.
#define ATUNNER_CALIBRATION(name, unit, fallback, meaning) \
  EXPECT_LT(made->name, 4 * expected.name + 4) << #name;   \
  EXPECT_GE(made->name, 0) << #name;
#include "atunner/device/calibration.def"
#undef ATUNNER_CALIBRATION
  for (const double latency :
       {made->step_clk, made->special_clk, made->shared_clk, made->l1_clk, made->shuffle_clk})
    EXPECT_GT(latency, 2);
  EXPECT_LE(made->dram_gbps, (*device)->profile().dram_gbps);
}

}  // namespace
}  // namespace atunner
