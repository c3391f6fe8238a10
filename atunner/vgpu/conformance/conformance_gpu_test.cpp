// The conformance files on a real GPU, through the driver's own compiler: what they expect is what
// hardware does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "atunner/base/files.h"
#include "atunner/device/real_device.h"
#include "atunner/vgpu/conformance/conformance_cases.h"
#include "atunner/vgpu/conformance/sweep_cases.h"

namespace atunner::vgpu {
namespace {

class DeviceRunner {
 public:
  explicit DeviceRunner(Device& device) : device_(device) {}

  Result<std::vector<uint64_t>> operator()(const std::string& ptx, const std::string& entry,
                                           const std::vector<uint64_t>& inputs, size_t cases,
                                           size_t outputs) {
    if (ptx != ptx_) {
      CompiledModule module;
      module.ptx = ptx;
      ATUNNER_TRY(module_, device_.Load(module));
      ptx_ = ptx;
    }
    std::vector<uint64_t> values(cases * outputs);
    ATUNNER_TRY(const auto from, device_.Allocate(8 * inputs.size() + 8));
    ATUNNER_TRY(const auto to, device_.Allocate(8 * values.size() + 8));
    ATUNNER_RETURN_IF_ERROR(device_.CopyIn(from->address(), std::as_bytes(std::span(inputs))));
    ATUNNER_RETURN_IF_ERROR(device_.Fill(to->address(), 0, 8 * values.size()));
    const auto count = static_cast<uint32_t>(cases);
    KernelArg number;
    number.size = 4;
    std::memcpy(number.bytes.data(), &count, 4);
    const KernelArg args[] = {KernelArg::Address(from->address()),
                              KernelArg::Address(to->address()), number};
    const LaunchShape shape{{(count + 31) / 32, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0};
    ATUNNER_TRY(const LaunchOutcome outcome, device_.Launch(*module_, entry, shape, args, {}));
    if (!outcome.completed()) return Invalid(outcome.message);
    ATUNNER_RETURN_IF_ERROR(
        device_.CopyOut(std::as_writable_bytes(std::span(values)), to->address()));
    return values;
  }

 private:
  Device& device_;
  std::string ptx_;
  std::unique_ptr<LoadedModule> module_;
};

TEST(ConformanceOnTheGpu, AgreesWithTheFiles) {
  const auto devices = ListRealDevices();
  if (!devices) {
    std::puts("[atunner] every test skipped");
    GTEST_SKIP() << devices.error().ToString();
  }
  auto device = OpenRealDevice(devices->front().index).value();
  const int arch = std::atoi(device->arch().c_str() + 3);  // "sm_90a"
  for (const char* file :
       {"integers", "logic", "floats", "halves", "convert", "approximate", "special"}) {
    const Path path = Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "conformance" /
                      (std::string(file) + ".txt");
    const auto forms = ReadConformance(ReadFile(path).value()).value();
    DeviceRunner runner(*device);
    size_t cases = 0;
    const auto wrong = CheckConformance(forms, arch, std::ref(runner), cases, 200);
    std::printf("%s: %zu cases, %zu differ\n", file, cases, wrong.size());
    EXPECT_THAT(wrong, testing::IsEmpty()) << file;
    EXPECT_GT(cases, 0u) << file;
  }
}

/// Other architectures than the recorded one approximate otherwise.
TEST(ConformanceOnTheGpu, SpecialFunctionsAreTheRecordedOnes) {
  const auto devices = ListRealDevices();
  if (!devices) {
    std::puts("[atunner] every test skipped");
    GTEST_SKIP() << devices.error().ToString();
  }
  auto device = OpenRealDevice(devices->front().index).value();
  if (std::atoi(device->arch().c_str() + 3) != 90) GTEST_SKIP() << "recorded on Hopper";
  const Path path = Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "conformance" / "sweeps.txt";
  const auto sweeps = ReadSweeps(ReadFile(path).value()).value();
  DeviceRunner runner(*device);
  size_t operands = 0;
  const auto wrong = CheckSweeps(sweeps, std::ref(runner), operands);
  std::printf("%zu forms, %zu operands, %zu blocks differ\n", sweeps.size(), operands,
              wrong.size());
  EXPECT_THAT(wrong, testing::IsEmpty());
}

}  // namespace
}  // namespace atunner::vgpu
