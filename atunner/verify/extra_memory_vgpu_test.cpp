// The most memory that the judge takes beside a large task's tensors, counted on a device that
// calls every task large.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "atunner/graph/text.h"
#include "atunner/model/kernel/tensor_totals.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"
#include "atunner/verify/verifier.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

/// Bytes that are allocated now, and the most that ever were.
struct Count {
  uint64_t now = 0;
  uint64_t most = 0;
};

class CountedBuffer : public Buffer {
 public:
  CountedBuffer(std::unique_ptr<Buffer> inner, std::shared_ptr<Count> count)
      : inner_(std::move(inner)), count_(std::move(count)) {
    count_->now += inner_->bytes();
    count_->most = std::max(count_->most, count_->now);
  }
  CountedBuffer(const CountedBuffer&) = delete;
  CountedBuffer& operator=(const CountedBuffer&) = delete;
  ~CountedBuffer() override { count_->now -= inner_->bytes(); }
  DeviceAddress address() const override { return inner_->address(); }
  uint64_t bytes() const override { return inner_->bytes(); }

 private:
  std::unique_ptr<Buffer> inner_;
  std::shared_ptr<Count> count_;
};

/// Says that it is a real GPU, so that tasks are executed whole at their own size, and counts
/// memory.
class CountingGpu : public UncheckedGpu {
 public:
  using UncheckedGpu::UncheckedGpu;
  Evidence evidence() const override { return Evidence::kMeasured; }
  /// PTX is enough for a virtual GPU.
  std::string arch() const override { return "compute_80"; }
  Result<std::unique_ptr<Buffer>> Allocate(uint64_t bytes) override {
    ATUNNER_TRY(auto inner, UncheckedGpu::Allocate(bytes));
    return std::make_unique<CountedBuffer>(std::move(inner), count);
  }

  std::shared_ptr<Count> count = std::make_shared<Count>();
};

constexpr uint64_t kMore = 384 << 10;
/// What does not grow with a task: results of the judge's kernels (one of 136 bytes for each of
/// 1024 blocks), and for each tensor two guard zones and the room by which its address varies.
constexpr uint64_t kResults = 1024 * 136;
constexpr uint64_t kAroundTensor = 2 * 16384 + 256;

class ExtraMemoryTest : public VirtualGpuTest {
 protected:
  /// Verifies the baseline that stores least, twice so that references are found again or computed
  /// again.
  void ExpectBounded(const char* name, std::vector<std::vector<int64_t>> shapes,
                     DType dtype = DType::kFloat32, Attributes attributes = {}) {
    ExpectBounded(
        FindOperator(name)->Instantiate({std::move(shapes), dtype, std::move(attributes)}).value());
  }
  void ExpectBounded(const KernelSpec& spec) {
    ExpectBounded(spec, OracleOf(spec)->ErrorBaseline(spec));
  }
  void ExpectBounded(const KernelSpec& spec, const RenderedKernel& plain) {
    const std::string& name = spec.name;
    CandidateKernel candidate = Compile(plain.source.text, plain.plan);
    uint64_t own_workspaces = 0;
    const ConcretePlan plan = Resolve(plain.plan, spec.dims, spec.attributes).value();
    for (const ConcreteWorkspace& workspace : plan.workspaces) own_workspaces += workspace.bytes;

    CountingGpu device(gpu_);
    VerifyOptions options;
    options.memory = {.large_bytes = 1, .more_bytes = kMore};
    auto verifier = Verifier::Make(device, *compiler_, spec, options).value();
    const auto shared = std::make_shared<const CandidateKernel>(std::move(candidate));
    for (const VerifyLevel level : {VerifyLevel::kBaseline, VerifyLevel::kComplete}) {
      const auto verified = verifier->Verify(shared, level);
      ASSERT_TRUE(verified.has_value()) << verified.error().ToString();
      const auto* verdict = std::get_if<Verdict>(&*verified);
      EXPECT_EQ(verdict, nullptr) << name << ": " << verdict->reason;
    }
    const auto own = static_cast<uint64_t>(TotalsOf(spec, spec.dims).bytes);
    const uint64_t fixed = kResults + spec.args.size() * kAroundTensor;
    EXPECT_LE(device.count->most, own + own + kMore + own_workspaces + fixed)
        << name << " of " << own;
    EXPECT_GT(device.count->most, own);
  }
};

TEST_F(ExtraMemoryTest, Elementwise) { ExpectBounded("gelu", {{64, 1024}}); }
// A reference in float64 takes twice the task's own bytes: it is computed in parts.
TEST_F(ExtraMemoryTest, ElementwiseOfNarrowFloats) {
  ExpectBounded("gelu", {{128, 1024}}, DType::kBFloat16);
}
TEST_F(ExtraMemoryTest, Rows) { ExpectBounded("softmax", {{128, 512}}); }
TEST_F(ExtraMemoryTest, Loss) { ExpectBounded("smooth_l1_loss", {{128, 512}}); }
TEST_F(ExtraMemoryTest, Product) { ExpectBounded("matmul", {{256, 256, 32}}); }
TEST_F(ExtraMemoryTest, Attention) { ExpectBounded("attention_gqa", {{2, 8, 64, 64}}); }
TEST_F(ExtraMemoryTest, Convolution) {
  ExpectBounded("conv_transpose", {{4, 4, 16, 16}, {4, 8, 3, 3}}, DType::kFloat32,
                {{"stride", int64_t{2}}});
}

// Images share the filters, so that the reference is computed for some images at a time.
TEST_F(ExtraMemoryTest, DepthwiseConvolution) {
  ExpectBounded("conv", {{8, 16, 32, 32}, {16, 1, 3, 3}}, DType::kBFloat16,
                {{"groups", int64_t{16}}, {"padding", int64_t{1}}});
}
// The reference has no parts, and the baseline stores the squares: both together are too much.
TEST_F(ExtraMemoryTest, NormOfAllElements) {
  const KernelSpec spec = SpecOfGraph(graph::Parse("graph frobenius\n"
                                                   "input x: float32[24, 64, 128]\n"
                                                   "square = x * x\n"
                                                   "sum = reduce_sum(square, axes=[0, 1, 2])\n"
                                                   "y = x / sqrt(sum)\n"
                                                   "output y\n")
                                          .value(),
                                      {})
                              .value();
  RenderedKernel kernel;
  kernel.source.text = R"(extern "C" __global__ void k(const float* x, float* y, int n) {
    __shared__ float sums[256];
    const int t = threadIdx.x;
    float sum = 0;
    for (int i = t; i < n; i += 256) sum += x[i] * x[i];
    sums[t] = sum;
    for (int half = 128; half > 0; half /= 2) {
      __syncthreads();
      if (t < half) sums[t] += sums[t + half];
    }
    __syncthreads();
    for (int i = t; i < n; i += 256) y[i] = x[i] / sqrtf(sums[0]);
  })";
  LaunchStep step{.entry = "k", .grid = {1, 1, 1}, .block = {256, 1, 1}};
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse("24 * 64 * 128"))};
  kernel.plan.steps = {step};
  ExpectBounded(spec, kernel);
}

}  // namespace
}  // namespace atunner
