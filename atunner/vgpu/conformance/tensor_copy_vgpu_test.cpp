// Bulk tensor copies, from the device's door for tensor maps to what lies in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "atunner/base/files.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/vgpu/conformance/tensor_copy_cases.h"
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
    request.source.text = ReadFile(Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "sanitizer" /
                                   "tensor_copies.cu")
                              .value();
    request.arch = "sm_90a";
    request.entries = TensorCopyEntries();
    const CompileOutcome outcome = (*compiler)->Compile(request).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error;
    module_ = device_.Load(*outcome.module).value();
  }

  /// The hazard of a copy of a box at `corner`, in a float32 tensor of `extent` rows and columns.
  std::string MessageOf(const char* entry, uint32_t extent, uint32_t box,
                        std::array<int, 2> corner) {
    const auto tensor = device_.Allocate(4096).value();
    TensorMapSpec spec;
    spec.address = tensor->address();
    spec.dims = {extent, extent};
    spec.strides = {extent * sizeof(float)};
    spec.box = {box, box};
    return Launch(entry, KernelArg::Map(device_.EncodeTensorMap(spec).value()), tensor->address(),
                  corner);
  }
  std::string Launch(const char* entry, const KernelArg& map, DeviceAddress other,
                     std::array<int, 2> at) {
    KernelArg corner;
    corner.size = 32;
    std::memcpy(corner.bytes.data(), at.data(), sizeof at);
    KernelArg bytes;
    bytes.size = 4;
    const KernelArg args[] = {map, corner, KernelArg::Address(other), bytes};
    const auto outcome = device_.Launch(*module_, entry, {{1, 1, 1}, {64, 1, 1}, {1, 1, 1}, 1024},
                                        args, {});
    EXPECT_TRUE(outcome.has_value());
    return outcome ? outcome->message : "";
  }

  VirtualGpu device_{FindProfile("H200").value()};
  std::unique_ptr<LoadedModule> module_;
};

TEST_F(TensorCopyTest, BoxesOfAllShapes) {
  for (size_t i = 0; i < TensorCopyNames().size(); ++i)
    EXPECT_EQ(CheckTensorCopy(device_, *module_, i), "");
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
  EXPECT_THAT(Launch("load2", KernelArg::Map({}), y->address(), {0, 0}),
              testing::HasSubstr("no tensor map of this device"));
}

TEST_F(TensorCopyTest, ABoxLargerThanSharedMemoryIsReported) {
  EXPECT_THAT(MessageOf("load2", 256, 256, {0, 0}),
              testing::HasSubstr("copies a box of 262144 bytes"));
}

TEST_F(TensorCopyTest, ABoxThatBeginsWithinAChunkIsReported) {
  EXPECT_THAT(MessageOf("load2", 32, 8, {-3, 0}),
              testing::HasSubstr("-12 bytes into the tensor's lines, no multiple of 16"));
}

TEST_F(TensorCopyTest, AStoreThatBeginsBeforeTheTensorIsReported) {
  EXPECT_THAT(MessageOf("store2", 32, 8, {0, -1}),
              testing::HasSubstr("begins before the tensor, at -1 of dimension 1"));
}

TEST(TensorMaps, KernelsReplaceFields) {
  VirtualGpu device(FindProfile("H200").value());
  EXPECT_THAT(CheckReplacedMaps(device), testing::IsEmpty());
}

/// The hazard of a kernel that changes a tensor map in global memory.
std::string ReplaceMessage(const std::string& field, bool is_map = true) {
  VirtualGpu device(FindProfile("H200").value());
  const auto room = device.Allocate(128).value();
  TensorMapSpec spec;
  spec.address = room->address();
  spec.dims = {64};
  spec.box = {64};
  const TensorMap map = is_map ? device.EncodeTensorMap(spec).value() : TensorMap{};
  EXPECT_TRUE(device.CopyIn(room->address(), map.bytes).has_value());
  CompiledModule compiled;
  compiled.ptx =
      ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 map)\n{\n.reg "
      ".b64 %map, %v;\n"
      "ld.param.u64 %map, [map];\nmov.b64 %v, 24;\ntensormap.replace.tile." +
      field + ";\nret;\n}\n";
  const auto module = device.Load(compiled);
  if (!module) return module.error().ToString();
  const KernelArg args[] = {KernelArg::Address(room->address())};
  return device.Launch(**module, "k", {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0}, args, {})
      .value()
      .message;
}

TEST(TensorMaps, FieldsThatCannotBeAreTold) {
  using testing::HasSubstr;
  EXPECT_EQ(ReplaceMessage("rank.global.b1024.b32 [%map], 1"), "");
  EXPECT_THAT(ReplaceMessage("rank.global.b1024.b32 [%map], 1", false),
              HasSubstr("no tensor map of this device"));
  EXPECT_THAT(ReplaceMessage("rank.global.b1024.b32 [%map], 5"),
              HasSubstr("rank 5 does not exist"));
  EXPECT_THAT(ReplaceMessage("elemtype.global.b1024.b32 [%map], 99"),
              HasSubstr("elemtype 99 does not exist"));
  EXPECT_THAT(ReplaceMessage("interleave_layout.global.b1024.b32 [%map], 1"),
              HasSubstr("interleaved layouts"));
  EXPECT_THAT(ReplaceMessage("global_stride.global.b1024.b64 [%map], 1, %v"),
              HasSubstr("no multiple of 16"));
  EXPECT_THAT(ReplaceMessage("rank.global.b1024.b32 [%map+8], 1"),
              HasSubstr("not a multiple of 64"));
  EXPECT_THAT(ReplaceMessage("box_dim.global.b1024.b32 [%map], 5, 1"), HasSubstr(": ordinal"));
  EXPECT_THAT(ReplaceMessage("swizzle_atomicity.global.b1024.b32 [%map], 0"),
              HasSubstr("does not support"));
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
