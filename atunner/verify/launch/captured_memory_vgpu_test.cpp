// Captured memory that holds addresses, and variables of a module that kernels change.
#include <gmock/gmock.h>

#include "atunner/capture/placed_addresses.h"
#include "atunner/verify/verifier.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

/// rows[0] and rows[1] are addresses of two rows: out[i] = rows[0][i] + rows[1][i].
class CapturedMemory : public VirtualGpuTest {
 protected:
  static constexpr int kCount = 256;

  void SetUp() override {
    VirtualGpuTest::SetUp();
    if (IsSkipped()) return;
    capture::BlobStore blobs(folder_.path());
    std::string row;
    for (int i = 0; i < kCount; ++i) {
      const int32_t value = i * 3;
      row.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    const capture::BlobId values = blobs.Put(row).value();
    const capture::BlobId table = blobs.Put(std::string(16, '\0')).value();
    spec_.name = "captured";
    spec_.args = {Argument("table", 4, Role::kInput,
                           PutAddresses(blobs, table, {{0, 1, 0}, {8, 2, 0}}).value()),
                  Argument("row", kCount, Role::kInput, values),
                  Argument("out", kCount, Role::kInOut, values),
                  Argument("counter", 1, Role::kInOut, blobs.Put(std::string(4, '\1')).value())};
    LaunchStep step{.entry = "k", .grid = {2, 1, 1}, .block = {128, 1, 1}};
    step.args = {ArgBinding::Tensor("table")};
    plan_.steps = {step};
    plan_.symbols = {{"counter", "counter"}};
    spec_.oracle.kind = Oracle::Kind::kKernel;
    spec_.oracle.kernel.emplace();
    spec_.oracle.kernel->source.text = Text("int", "2 * (i % 2)");
    spec_.oracle.kernel->plan = plan_;
    verifier_ = Verifier::Make(gpu_, *compiler_, spec_, {}).value();
  }

  ArgSpec Argument(const std::string& name, int count, Role role, const std::string& digest) const {
    ArgSpec arg{.name = name, .role = role, .dtype = DType::kInt32, .value = {}};
    arg.shape = {Expr(int64_t{count})};
    arg.fill = {.kind = Fill::Kind::kBlob, .path = folder_.path().string(), .digest = digest};
    return arg;
  }

  /// The second row is changed in place, and a counter by each thread.
  static std::string Text(const std::string& type, const std::string& step) {
    return "__device__ int counter;\n"
           "extern \"C\" __global__ void k(" +
           type +
           "* const* rows) {\n"
           "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  rows[1][i] += rows[0][i];\n"
           "  atomicAdd(&counter, " +
           step + ");\n}\n";
  }

  VerdictKind Judge(const std::string& text) {
    const auto verified = verifier_->Verify(
        std::make_shared<const CandidateKernel>(Compile(text, plan_)));
    EXPECT_TRUE(verified.has_value()) << verified.error().ToString();
    if (!verified) return VerdictKind::kLaunchFailure;
    const auto* refused = std::get_if<Verdict>(&*verified);
    return refused ? refused->kind : VerdictKind::kCorrect;
  }

  TemporaryDirectory folder_;
  KernelSpec spec_;
  LaunchPlan plan_;
  std::unique_ptr<Verifier> verifier_;
};

TEST_F(CapturedMemory, AddressesLeadToTheTasksOwnMemory) {
  EXPECT_EQ(Judge(Text("int", "2 * (i % 2)")), VerdictKind::kCorrect);
  EXPECT_EQ(Judge(Text("unsigned", "1")), VerdictKind::kCorrect);
}

TEST_F(CapturedMemory, WrongResultsBehindThemAreFound) {
  EXPECT_NE(Judge(Text("char", "1")), VerdictKind::kCorrect);
  EXPECT_NE(Judge(Text("int", "i == 5 ? 2 : 1")), VerdictKind::kCorrect);
}

}  // namespace
}  // namespace atunner
