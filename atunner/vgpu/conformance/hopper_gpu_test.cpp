// wgmma and bulk tensor copies on a real GPU: what the virtual one is tested against is what
// hardware does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "atunner/base/files.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/real_device.h"
#include "atunner/model/value/capabilities.h"
#include "atunner/vgpu/conformance/tensor_copy_cases.h"
#include "atunner/vgpu/conformance/wgmma_cases.h"

namespace atunner::vgpu {
namespace {

class HopperOnTheGpu : public testing::Test {
 protected:
  void SetUp() override {
    const auto devices = ListRealDevices();
    if (devices && CapabilitiesOf(devices->front().profile).wgmma)
      device_ = OpenRealDevice(devices->front().index).value();
    if (device_) return;
    std::puts("[atunner] every test skipped");
    GTEST_SKIP() << "there is no GPU of compute capability 9.0";
  }
  std::unique_ptr<TimedDevice> device_;
};

TEST_F(HopperOnTheGpu, TensorProductsAgreeWithTheCases) {
  const auto run = [&](const WgmmaData& data) -> Result<std::vector<uint32_t>> {
    CompiledModule compiled;
    compiled.ptx = data.ptx;
    ATUNNER_TRY(const auto module, device_->Load(compiled));
    std::vector<uint32_t> output(data.expected.size());
    ATUNNER_TRY(const auto from, device_->Allocate(4 * data.input.size()));
    ATUNNER_TRY(const auto to, device_->Allocate(4 * output.size()));
    ATUNNER_RETURN_IF_ERROR(device_->CopyIn(from->address(), std::as_bytes(std::span(data.input))));
    const KernelArg args[] = {KernelArg::Address(from->address()),
                              KernelArg::Address(to->address())};
    const LaunchShape shape{{1, 1, 1}, {data.threads, 1, 1}, {1, 1, 1}, 0};
    ATUNNER_TRY(const LaunchOutcome outcome, device_->Launch(*module, "product", shape, args, {}));
    if (!outcome.completed()) return Invalid(outcome.message);
    ATUNNER_RETURN_IF_ERROR(
        device_->CopyOut(std::as_writable_bytes(std::span(output)), to->address()));
    return output;
  };
  EXPECT_THAT(CheckWgmma(WgmmaCases(), run), testing::IsEmpty());
  EXPECT_THAT(CheckMma(MmaCases(), run), testing::IsEmpty());
  EXPECT_THAT(CheckQuads(run), testing::IsEmpty());
}

TEST_F(HopperOnTheGpu, KernelsReplaceFieldsOfTensorMaps) {
  EXPECT_THAT(CheckReplacedMaps(*device_), testing::IsEmpty());
}

class TensorCopyOnTheGpu : public HopperOnTheGpu, public testing::WithParamInterface<size_t> {};

TEST_P(TensorCopyOnTheGpu, AgreesWithTheCase) {
  auto compiler = MakeNvrtcCompiler();
  if (!compiler) GTEST_SKIP() << compiler.error().ToString();
  CompileRequest request;
  request.source.name = "tensor_copies.cu";
  request.source.text = ReadFile(Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "sanitizer" /
                                 "tensor_copies.cu")
                            .value();
  request.arch = device_->arch();
  request.entries = TensorCopyEntries();
  const CompileOutcome outcome = (*compiler)->Compile(request).value();
  ASSERT_TRUE(outcome.ok()) << outcome.error;
  const auto module = device_->Load(*outcome.module).value();
  EXPECT_EQ(CheckTensorCopy(*device_, *module, GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Boxes, TensorCopyOnTheGpu,
                         testing::Range<size_t>(0, TensorCopyNames().size()));

}  // namespace
}  // namespace atunner::vgpu
