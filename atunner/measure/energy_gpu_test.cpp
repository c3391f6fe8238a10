// NVML's energy counter on the machine's GPU, if it has one.
#include <gtest/gtest.h>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/real_device.h"
#include "atunner/measure/harness.h"
#include "atunner/operators/operator.h"

namespace atunner {
namespace {

/// Fills memory: some microseconds of work whose power is well above idling.
class Filler : public TimedKernel {
 public:
  Filler(TimedDevice& device, const Buffer& room) : device_(device), room_(room) {}
  LaunchOutcome Enqueue(const TaskBuffers&) override {
    if (device_.EnqueueFill(room_.address(), 1, room_.bytes())) return {};
    return {LaunchOutcome::Kind::kRefused, "no fill", {}, 0};
  }
  Status Renew() override { return {}; }

 private:
  TimedDevice& device_;
  const Buffer& room_;
};

TEST(Energy, OfARunIsPositiveAndNoMoreThanTheBoardCanTake) {
  const auto devices = ListRealDevices();
  if (!devices) GTEST_SKIP() << "[atunner] every test skipped: " << devices.error().what;
  const auto device = OpenRealDevice(0).value();
  const auto count = device->EnergyJoules();
  if (!count) {
    EXPECT_EQ(count.error().code, ErrorCode::kUnsupported);
    GTEST_SKIP() << count.error().ToString();
  }
  const auto compiler = MakeNvrtcCompiler().value();
  const KernelSpec spec =
      FindOperator("softmax")->Instantiate({{{64, 64}}, DType::kFloat32, {}}).value();
  const auto verifier = Verifier::Make(*device, *compiler, spec, {}).value();
  const auto harness = Harness::Make(*device, *verifier).value();
  const auto room = device->Allocate(uint64_t{256} << 20).value();
  Filler filler(*device, *room);

  const auto start = device->CreateEvent().value();
  const auto end = device->CreateEvent().value();
  const TaskBuffers* buffers = verifier->BuffersAt(spec.dims, 0).value();
  ASSERT_TRUE(device->Record(*start));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(filler.Enqueue(*buffers).completed());
  ASSERT_TRUE(device->Record(*end));
  const double time_ns = device->ElapsedNs(*start, *end).value() / 100;

  const auto joules = harness->EnergyOfRun(filler, time_ns, 1);
  ASSERT_TRUE(joules) << joules.error().ToString();
  const double watts = *joules / (time_ns * 1e-9);
  EXPECT_GT(watts, 30);
  EXPECT_LT(watts, 1500);
}

}  // namespace
}  // namespace atunner
