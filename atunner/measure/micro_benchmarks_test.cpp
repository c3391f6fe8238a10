#include "atunner/measure/micro_benchmarks.h"

#include <gtest/gtest.h>

#include "atunner/measure/fake_timed_device_test.h"

namespace atunner {
namespace {

LaunchOutcome Completes(FakeModule&, std::span<const KernelArg>) { return {}; }

size_t Fills(const FakeTimedDevice& device) {
  return static_cast<size_t>(
      std::ranges::count_if(device.journal, [](const Call& call) { return call.byte == 0x5a; }));
}

TEST(MicroBenchmarks, LaunchesInARowAreTimedTogether) {
  FakeTimedDevice device;
  FakeCompiler compiler;
  device.kernels["k"] = Completes;
  const auto kernels = MicroBenchmarks::Make(device, compiler, "k.cu", "", {"k"});
  ASSERT_TRUE(kernels.has_value());
  const double one = kernels->Time("k", 1, 32, {LongArg(0)}).value();
  EXPECT_GT(one, 0);
  EXPECT_DOUBLE_EQ(kernels->Time("k", 1, 32, {LongArg(0)}, 3).value() - one, 2 * device.cost("k"));
  EXPECT_EQ(Fills(device), 0u);
}

TEST(MicroBenchmarks, CachesAreEmptiedBeforeEachSample) {
  FakeTimedDevice device;
  FakeCompiler compiler;
  device.kernels["k"] = Completes;
  const auto kernels = MicroBenchmarks::Make(device, compiler, "k.cu", "", {"k"}, 1 << 20);
  ASSERT_TRUE(kernels.has_value());
  ASSERT_TRUE(kernels->Time("k", 1, 32, {LongArg(0)}, 3).has_value());
  EXPECT_EQ(Fills(device), 11u);
}

}  // namespace
}  // namespace atunner
