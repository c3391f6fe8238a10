// Warp-specialised matrix products as modern kernels write them (sanitizer/hopper.cu): without
// mistakes they give the right result and no report; every planted mistake is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "atunner/base/files.h"
#include "atunner/base/random.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/engine.h"
#include "atunner/vgpu/instructions/tensor_map.h"

namespace atunner::vgpu {
namespace {

constexpr int kRows = 128;
constexpr int kColumns = 64;
constexpr int kTiles = 5;  // more than the stages, so that they wrap around
constexpr int kInner = 64 * kTiles;
constexpr uint32_t kSharedBytes = 2 * 3 * 8192 + 32;

const char* const kKernels[] = {"correct",       "no_full_wait",  "old_phase", "no_empty_wait",
                                "early_release", "no_wait_group", "no_fence",  "missing_warp",
                                "divergent",     "by_tensor_maps"};

class HopperTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto compiler = MakeNvrtcCompiler();
    if (!compiler) return;
    CompileRequest request;
    request.source.name = "hopper.cu";
    request.source.text =
        ReadFile(Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "sanitizer" / "hopper.cu").value();
    request.arch = "sm_90a";
    request.entries.assign(std::begin(kKernels), std::end(kKernels));
    const CompileOutcome outcome = (*compiler)->Compile(request).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error;
    ptx_ = outcome.module->ptx;
  }
  void SetUp() override {
    if (ptx_.empty()) GTEST_SKIP() << "there is no compiler";
    memory_.Track();
    program_ = LoadProgram(ptx::Parse(ptx_).value(), memory_).value();
    Random random(3);
    for (int i = 0; i < kRows * kInner; ++i) a_.push_back(static_cast<int>(random.Below(7)) - 3);
    for (int i = 0; i < kColumns * kInner; ++i) b_.push_back(static_cast<int>(random.Below(7)) - 3);
  }

  /// Tile by tile, 64 rows at a time, the eight elements of a core's row side by side.
  uint64_t PutTiles(const std::vector<int>& matrix, int rows) {
    std::vector<uint16_t> halves;
    for (int tile = 0; tile < kTiles; ++tile) {
      for (int part = 0; part < rows; part += 64) {
        for (int k = 0; k < 64; k += 8) {
          for (int row = part; row < part + 64; ++row) {
            for (int e = 0; e < 8; ++e)
              halves.push_back(FloatToHalf(static_cast<float>(
                  matrix[static_cast<size_t>(row * kInner + tile * 64 + k + e)])));
          }
        }
      }
    }
    const uint64_t address = memory_.Allocate(2 * halves.size()).value();
    std::memcpy(reinterpret_cast<void*>(address), halves.data(), 2 * halves.size());
    memory_.MarkDefined(address, 2 * halves.size());
    return address;
  }

  LaunchOutcome Run(const std::string& kernel, ExecOptions options = {}) {
    const uint64_t pointers[] = {PutTiles(a_, kRows), PutTiles(b_, kColumns),
                                 memory_.Allocate(4 * kRows * kColumns).value()};
    c_ = pointers[2];
    std::vector<std::byte> params(28);
    std::memcpy(params.data(), pointers, sizeof pointers);
    std::memcpy(params.data() + 24, &kTiles, 4);
    return Launch(kernel, params, options);
  }
  LaunchOutcome Launch(const std::string& kernel, const std::vector<std::byte>& params,
                       ExecOptions options = {}) {
    options.check_global = true;
    options.deadline_seconds = 20;
    result_ = program_->Run(kernel, {{1, 1, 1}, {384, 1, 1}, {1, 1, 1}, kSharedBytes}, params,
                            options);
    return result_.outcome;
  }

  /// Rows of the matrix with a tensor map of boxes of 64 elements.
  TensorMap PutRows(const std::vector<int>& matrix, int rows) {
    TensorMapSpec spec;
    spec.dtype = DType::kFloat16;
    spec.address = memory_.Allocate(2 * matrix.size()).value();
    spec.dims = {kInner, static_cast<uint64_t>(rows)};
    spec.strides = {2 * kInner};
    spec.box = {64, static_cast<uint32_t>(rows)};
    spec.swizzle_bytes = 128;
    auto* halves = reinterpret_cast<uint16_t*>(spec.address);
    for (size_t i = 0; i < matrix.size(); ++i)
      halves[i] = FloatToHalf(static_cast<float>(matrix[i]));
    memory_.MarkDefined(spec.address, 2 * matrix.size());
    EXPECT_TRUE(Check(spec).has_value());
    return EncodeTensorMap(spec);
  }

  void ExpectProduct() {
    std::vector<float> c(kRows * kColumns);
    std::memcpy(c.data(), reinterpret_cast<const void*>(c_), 4 * c.size());
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kColumns; ++j) {
        int sum = 0;
        for (int k = 0; k < kInner; ++k)
          sum += a_[static_cast<size_t>(i * kInner + k)] * b_[static_cast<size_t>(j * kInner + k)];
        ASSERT_EQ(c[static_cast<size_t>(i * kColumns + j)], static_cast<float>(sum))
            << i << ", " << j;
      }
    }
  }

  /// The first report of a kernel with a mistake.
  std::string Found(const std::string& kernel) {
    const LaunchOutcome outcome = Run(kernel);
    return outcome.hazards.empty()
               ? "nothing found: " + outcome.message
               : std::string(Name(outcome.hazards[0].kind)) + ": " + outcome.hazards[0].detail;
  }

  static inline std::string ptx_;
  Memory memory_{uint64_t{1} << 30};
  std::unique_ptr<Program> program_;
  std::vector<int> a_, b_;
  uint64_t c_ = 0;
  ExecResult result_;
};

TEST_F(HopperTest, PipelineWithoutMistakesIsRightAndNotReported) {
  const LaunchOutcome outcome = Run("correct");
  ASSERT_TRUE(outcome.completed()) << outcome.message;
  ExpectProduct();
}

TEST_F(HopperTest, TensorMapsAndDescriptorsSwizzleAlike) {
  const TensorMap maps[] = {PutRows(a_, kRows), PutRows(b_, kColumns)};
  c_ = memory_.Allocate(4 * kRows * kColumns).value();
  std::vector<std::byte> params(sizeof maps + 12);
  std::memcpy(params.data(), maps, sizeof maps);
  std::memcpy(params.data() + sizeof maps, &c_, 8);
  std::memcpy(params.data() + sizeof maps + 8, &kTiles, 4);
  const LaunchOutcome outcome = Launch("by_tensor_maps", params);
  ASSERT_TRUE(outcome.completed()) << outcome.message;
  ExpectProduct();
}

TEST_F(HopperTest, TensorWorkIsCounted) {
  ExecOptions options;
  options.count = true;
  Run("correct", options);
  EXPECT_EQ(result_.counts.tensor.flops, 2.0 * kRows * kColumns * kInner);
  EXPECT_EQ(result_.counts.tensor.wgmma_work, result_.counts.tensor.flops);
  EXPECT_EQ(result_.counts.tensor.mma_work, 0);
  EXPECT_EQ(result_.counts.async_copy_bytes, 2u * (kRows + kColumns) * kInner);
  EXPECT_EQ(result_.counts.global.unique_load_sectors, 2u * (kRows + kColumns) * kInner / 32);
}

TEST_F(HopperTest, MissingWaitForTheCopy) {
  EXPECT_THAT(Found("no_full_wait"),
              testing::HasSubstr("while an asynchronous copy to it is in flight"));
}
TEST_F(HopperTest, OldPhase) {
  EXPECT_THAT(Found("old_phase"), testing::HasSubstr("the phase of its mbarrier does not end"));
}
TEST_F(HopperTest, MissingWaitForAnEmptyStage) {
  EXPECT_THAT(Found("no_empty_wait"), testing::HasSubstr("where nobody waited for the last copy"));
}
TEST_F(HopperTest, StageReleasedTooEarly) {
  EXPECT_THAT(Found("early_release"),
              testing::HasSubstr("which an asynchronous operation still reads"));
}
TEST_F(HopperTest, AccumulatorsReadTooEarly) {
  EXPECT_THAT(Found("no_wait_group"), testing::HasSubstr("before wgmma.wait_group"));
}
TEST_F(HopperTest, MissingProxyFence) {
  EXPECT_THAT(Found("no_fence"), testing::HasSubstr("no fence.proxy.async between"));
}
TEST_F(HopperTest, MissingWarp) {
  EXPECT_THAT(Found("missing_warp"), testing::HasSubstr("warp 7 of its warp group has ended"));
}
TEST_F(HopperTest, DivergentLanes) {
  EXPECT_THAT(Found("divergent"), testing::HasSubstr("only some lanes of the warp"));
}

}  // namespace
}  // namespace atunner::vgpu
