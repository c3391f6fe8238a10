// Bulk tensor copies, from the device's door for tensor maps to what lies in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "atunner/base/files.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/vgpu/tensor_copy_cases.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::vgpu {
namespace {

class TensorCopyTest : public testing::Test {
 protected:
  void SetUp() override {
    auto compiler = MakeNvrtcCompiler();
    if (!compiler) GTEST_SKIP() << compiler.error().ToString();
    CompileRequest request;
    request.source.name = "tensor_copies.cu";
    request.source.text =
        ReadFile(Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "sanitizer" / "tensor_copies.cu").value();
    request.arch = "sm_90a";
    request.entries = TensorCopyEntries();
    const CompileOutcome outcome = (*compiler)->Compile(request).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error;
    module_ = device_.Load(*outcome.module).value();
  }

  VirtualGpu device_{FindProfile("H200").value()};
  std::unique_ptr<LoadedModule> module_;
};

TEST_F(TensorCopyTest, BoxesOfAllShapes) {
  for (size_t i = 0; i < TensorCopyNames().size(); ++i) EXPECT_EQ(CheckTensorCopy(device_, *module_, i), "");
}

TEST_F(TensorCopyTest, BulkReductionWithoutAMap) {
  const auto x = device_.Allocate(1024).value();
  const auto y = device_.Allocate(1024).value();
  std::vector<float> values(256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ASSERT_TRUE(device_.CopyIn(x->address(), std::as_bytes(std::span(values))).has_value());
  ASSERT_TRUE(device_.CopyIn(y->address(), std::as_bytes(std::span(values))).has_value());
  const KernelArg args[] = {KernelArg::Address(x->address()), KernelArg::Address(y->address())};
  const LaunchShape shape{{1, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0};
  const auto outcome = device_.Launch(*module_, "add_bulk", shape, args, {});
  ASSERT_TRUE(outcome.has_value() && outcome->completed()) << outcome->message;
  ASSERT_TRUE(device_.CopyOut(std::as_writable_bytes(std::span(values)), y->address()).has_value());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], 2 * static_cast<float>(i));
}

TEST_F(TensorCopyTest, BytesThatAreNoMapAreReported) {
  const auto y = device_.Allocate(4096).value();
  KernelArg corner;
  corner.size = 20;
  KernelArg bytes;
  bytes.size = 4;
  const KernelArg args[] = {KernelArg::Map({}), corner, KernelArg::Address(y->address()), bytes};
  const LaunchShape shape{{1, 1, 1}, {64, 1, 1}, {1, 1, 1}, 1024};
  const auto outcome = device_.Launch(*module_, "load2", shape, args, {});
  ASSERT_TRUE(outcome.has_value());
  EXPECT_THAT(outcome->message, testing::HasSubstr("no tensor map of this device"));
}

TEST_F(TensorCopyTest, ABoxLargerThanSharedMemoryIsReported) {
  const auto tensor = device_.Allocate(4096).value();
  TensorMapSpec spec;
  spec.address = tensor->address();
  spec.dims = {256, 256};
  spec.strides = {1024};
  spec.box = {256, 256};
  KernelArg corner;
  corner.size = 20;
  KernelArg bytes;
  bytes.size = 4;
  const KernelArg args[] = {KernelArg::Map(device_.EncodeTensorMap(spec).value()), corner,
                            KernelArg::Address(tensor->address()), bytes};
  const auto outcome = device_.Launch(*module_, "load2", {{1, 1, 1}, {64, 1, 1}, {1, 1, 1}, 1024}, args, {});
  ASSERT_TRUE(outcome.has_value());
  EXPECT_THAT(outcome->message, testing::HasSubstr("copies a box of 262144 bytes"));
}

TEST_F(TensorCopyTest, ABoxThatBeginsWithinAChunkIsReported) {
  const auto tensor = device_.Allocate(4096).value();
  TensorMapSpec spec;
  spec.address = tensor->address();
  spec.dims = {32, 32};
  spec.strides = {128};
  spec.box = {8, 8};
  KernelArg corner;
  corner.size = 20;
  const int at[] = {-3, 0};
  std::memcpy(corner.bytes.data(), at, sizeof at);
  KernelArg bytes;
  bytes.size = 4;
  const KernelArg args[] = {KernelArg::Map(device_.EncodeTensorMap(spec).value()), corner,
                            KernelArg::Address(tensor->address()), bytes};
  const auto outcome = device_.Launch(*module_, "load2", {{1, 1, 1}, {64, 1, 1}, {1, 1, 1}, 1024}, args, {});
  ASSERT_TRUE(outcome.has_value());
  EXPECT_THAT(outcome->message, testing::HasSubstr("-12 bytes into the tensor's lines, no multiple of 16"));
}

TEST_F(TensorCopyTest, AStoreThatBeginsBeforeTheTensorIsReported) {
  const auto tensor = device_.Allocate(4096).value();
  TensorMapSpec spec;
  spec.address = tensor->address();
  spec.dims = {32, 32};
  spec.strides = {128};
  spec.box = {8, 8};
  KernelArg corner;
  corner.size = 20;
  const int at[] = {0, -1};
  std::memcpy(corner.bytes.data(), at, sizeof at);
  KernelArg bytes;
  bytes.size = 4;
  const KernelArg args[] = {KernelArg::Map(device_.EncodeTensorMap(spec).value()), corner,
                            KernelArg::Address(tensor->address()), bytes};
  const auto outcome = device_.Launch(*module_, "store2", {{1, 1, 1}, {64, 1, 1}, {1, 1, 1}, 1024}, args, {});
  ASSERT_TRUE(outcome.has_value());
  EXPECT_THAT(outcome->message, testing::HasSubstr("begins before the tensor, at -1 of dimension 1"));
}

TEST(TensorMaps, OldDevicesHaveNone) {
  VirtualGpu device(FindProfile("A100").value());
  TensorMapSpec spec;
  spec.dims = {64};
  spec.box = {64};
  EXPECT_EQ(device.EncodeTensorMap(spec).error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace atunner::vgpu
