// Users' kernels are judged against themselves, carried in float64.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "atunner/verify/oracle/given_baseline.h"
#include "atunner/verify/oracle/user_reference.h"
#include "atunner/verify/verifier.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;

class UserReferenceTest : public VirtualGpuTest {
 protected:
  /// The task y = k(x), one block of 128 threads for each row of `cols` numbers; `results` numbers
  /// per row.
  void SetTask(int rows, int cols, int results, DType dtype = DType::kFloat32) {
    spec_ = {};
    spec_.name = "user";
    spec_.dims = {{"rows", rows}, {"cols", cols}, {"results", results}};
    ArgSpec x{.name = "x", .dtype = dtype, .shape = {}, .value = {}, .fill = {}};
    x.shape = {Expr::MustParse("rows"), Expr::MustParse("cols")};
    ArgSpec y = x;
    y.name = "y";
    y.role = Role::kOutput;
    y.shape[1] = Expr::MustParse("results");
    spec_.args = {x, y};
    LaunchStep step{.entry = "k", .grid = {Expr::MustParse("rows"), 1, 1}, .block = {128, 1, 1}};
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y")};
    plan_ = {.steps = {step}};
    type_ = dtype == DType::kFloat32   ? "float"
            : dtype == DType::kFloat16 ? "half"
                                       : "__nv_bfloat16";
  }

  std::string Text(const std::string& body) const {
    return fmt::format(
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        "extern \"C\" __global__ void k(const {0}* x, {0}* y) {{\n"
        "  const int t = threadIdx.x, cols = {1};\n"
        "  x += (long long)blockIdx.x * cols; y += (long long)blockIdx.x * {2};\n"
        "  __shared__ float part[128];\n{3}\n}}\n",
        type_, spec_.dims.at("cols"), spec_.dims.at("results"), body);
  }

  void SetOracle(const std::string& body) {
    spec_.oracle.kind = Oracle::Kind::kKernel;
    spec_.oracle.kernel.emplace();
    spec_.oracle.kernel->source.text = Text(body);
    spec_.oracle.kernel->plan = plan_;
    verifier_ = Verifier::Make(gpu_, *compiler_, spec_, {}).value();
  }

  Verdict Judge(const std::string& body) {
    const auto verified = verifier_->Verify(
        std::make_shared<const CandidateKernel>(Compile(Text(body), plan_)));
    EXPECT_TRUE(verified.has_value()) << verified.error().ToString();
    if (!verified) return {};
    const auto* refused = std::get_if<Verdict>(&*verified);
    return refused ? *refused : std::get<VerifiedKernel>(*verified).verdict();
  }
  void ExpectRight(const std::string& body) {
    const Verdict verdict = Judge(body);
    EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason << "\n" << body;
  }
  void ExpectWrong(const std::string& body) {
    EXPECT_NE(Judge(body).kind, VerdictKind::kCorrect) << body;
  }

  KernelSpec spec_;
  LaunchPlan plan_;
  std::string type_;
  std::unique_ptr<Verifier> verifier_;
};

constexpr const char* kInOrder =
    "if (t == 0) { float s = 0; for (int i = 0; i < cols; ++i) s += (float)x[i]; y[0] = s; }";
constexpr const char* kBackwards =
    "if (t == 0) { float s = 0; for (int i = cols; i-- > 0;) s += (float)x[i]; y[0] = s; }";
constexpr const char* kTree =
    "float s = 0; for (int i = t; i < cols; i += 128) s += (float)x[i];\n"
    "part[t] = s; __syncthreads();\n"
    "for (int h = 64; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }\n"
    "if (t == 0) y[0] = part[0];";
constexpr const char* kFourSums =
    "if (t == 0) { float s[4] = {0, 0, 0, 0};\n"
    "for (int i = 0; i < cols; ++i) s[i % 4] += (float)x[i];\n"
    "y[0] = (s[0] + s[1]) + (s[2] + s[3]); }";
constexpr const char* kDouble =
    "if (t == 0) { double s = 0; for (int i = 0; i < cols; ++i) s += (double)(float)x[i];\n"
    "y[0] = (float)s; }";
constexpr const char* kHalfSum =
    "if (t == 0) { half s = 0; for (int i = 0; i < cols; ++i) s = __hadd(s, (half)(float)x[i]);\n"
    "y[0] = (float)s; }";
constexpr const char* kSkipsOne =
    "if (t == 0) { float s = 0; for (int i = 0; i < cols; ++i) if (i != 77) s += (float)x[i];\n"
    "y[0] = s; }";

TEST_F(UserReferenceTest, SumsInAnyOrderAreRight) {
  SetTask(64, 3000, 1);
  for (const char* given : {kInOrder, kTree, kDouble}) {
    SetOracle(given);
    for (const char* candidate : {kInOrder, kBackwards, kTree, kFourSums, kDouble})
      ExpectRight(candidate);
    ExpectWrong(kHalfSum);
    ExpectWrong(kSkipsOne);
  }
  EXPECT_THAT(Judge(kTree).checks.back().family, testing::Not(testing::IsEmpty()));
}

// A warp in lockstep, as old reductions rely on it.
constexpr const char* kLockstep =
    "float s = 0; for (int i = t; i < cols; i += 128) s += (float)x[i];\n"
    "part[t] = s; __syncthreads(); volatile float* p = part;\n"
    "if (t < 64) p[t] += p[t + 64]; __syncthreads();\n"
    "if (t < 32) { for (int h = 32; h; h >>= 1) p[t] += p[t + h]; }\n"
    "if (t == 0) y[0] = p[0];";
constexpr const char* kForgetsBarrier =
    "float s = 0; for (int i = t; i < cols; i += 128) s += (float)x[i];\n"
    "part[t] = s;\n"
    "for (int h = 64; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }\n"
    "if (t == 0) y[0] = part[0];";

TEST_F(UserReferenceTest, RacesThatTheKernelHasAsGivenAreNotHeldAgainstCandidates) {
  SetTask(8, 512, 1);
  SetOracle(kLockstep);
  const Verdict verdict = Judge(kLockstep);
  EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
  ASSERT_FALSE(verdict.checks.empty());
  EXPECT_EQ(verdict.checks[0].check, "hazards");
  EXPECT_THAT(verdict.checks[0].detail, HasSubstr("races are not searched for"));
  ExpectWrong(kSkipsOne);
  // It reads shared memory that nobody wrote, as the kernel as given does not.
  const std::string unwritten =
      "if (x[0] > 1e30f) part[t] = 1;\n"
      "if (t == 0) { float s = part[5] > 1e38f ? 1 : 0;\n"
      "for (int i = 0; i < cols; ++i) s += x[i]; y[0] = s; }";
  EXPECT_EQ(Judge(unwritten).kind, VerdictKind::kRace);
}

TEST_F(UserReferenceTest, RacesOfACandidateAloneAreRefused) {
  SetTask(8, 512, 1);
  SetOracle(kTree);
  for (const char* racing : {kLockstep, kForgetsBarrier})
    EXPECT_EQ(Judge(racing).kind, VerdictKind::kRace) << racing;
  ExpectRight(kTree);
}

TEST_F(UserReferenceTest, TheReportNamesTheReference) {
  SetTask(8, 300, 1);
  SetOracle(kInOrder);
  const Verdict verdict = Judge(kInOrder);
  ASSERT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
  bool named = false;
  for (const CheckRecord& record : verdict.checks)
    named |= record.detail.contains("the kernel as given, carried in float64");
  EXPECT_TRUE(named);
}

constexpr const char* kEach = "for (int i = t; i < cols; i += 128) y[i] = ";

TEST_F(UserReferenceTest, FewElementsOffByLittleAreWrong) {
  SetTask(64, 512, 512);
  SetOracle(std::string(kEach) + "expf(-fabsf(x[i])) * 3.0f;");
  ExpectRight(std::string(kEach) + "3.0f * __expf(-fabsf(x[i]));");
  ExpectRight(std::string(kEach) + "3.0f * exp2f(-fabsf(x[i]) * 1.44269504f);");
  ExpectWrong(std::string(kEach) + "expf(-fabsf(x[i])) * (i == 5 ? 3.0006f : 3.0f);");
}

TEST_F(UserReferenceTest, TheLastPlaceOfAnInputIsNoExcuse) {
  SetTask(64, 512, 512);
  spec_.args[0].fill.kind = Fill::Kind::kUniform;
  spec_.args[0].fill.low = 9000;
  spec_.args[0].fill.high = 11000;
  SetOracle(std::string(kEach) + "sinf(x[i]);");
  ExpectRight(std::string(kEach) + "(float)sin((double)x[i]);");
  ExpectWrong(std::string(kEach) + "sinf(__int_as_float(__float_as_int(x[i]) + 1));");
}

TEST_F(UserReferenceTest, HiddenSumsMayBeInAnyOrder) {
  SetTask(32, 1500, 1500);
  const std::string block_sum =
      "float s = 0; for (int i = t; i < cols; i += 128) s += expf(x[i] - m);\n"
      "part[t] = s; __syncthreads();\n"
      "for (int h = 64; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }\n"
      "s = part[0];\n";
  const std::string row_maximum =
      "float m = x[0]; for (int i = 1; i < cols; ++i) m = fmaxf(m, x[i]);\n";
  const std::string in_order = "float s = 0; for (int i = 0; i < cols; ++i) s += expf(x[i] - m);\n";
  const std::string in_half =
      "half h = 0; for (int i = 0; i < cols; ++i) h = __hadd(h, (half)expf(x[i] - m));\n"
      "const float s = h;\n";
  const std::string store = std::string(kEach) + "expf(x[i] - m) / s;";
  for (const std::string& given : {block_sum, in_order}) {
    SetOracle(row_maximum + given + store);
    ExpectRight(row_maximum + block_sum + store);
    ExpectRight(row_maximum + in_order + store);
    ExpectWrong(row_maximum + in_half + store);
  }
}

TEST(AddsFloatsByAtomics, OnlyFloatingPointSums) {
  EXPECT_TRUE(AddsFloatsByAtomics("{ red.global.add.f32 [%rd1], %f1; }"));
  EXPECT_TRUE(AddsFloatsByAtomics("@%p1 atom.shared.add.noftz.f16x2 %r1, [%r2], %r3;"));
  EXPECT_TRUE(AddsFloatsByAtomics("atom.global.add.f64 \t%fd1, [%rd1], %fd2;"));
  EXPECT_FALSE(AddsFloatsByAtomics("red.global.add.u32 [%rd1], %r1; add.f32 %f1, %f2, %f3;"));
  EXPECT_FALSE(AddsFloatsByAtomics("atom.global.max.s32 %r1, [%rd1], %r2;"));
}

TEST_F(UserReferenceTest, AKernelThatAddsByAtomicsNeedNotRepeatItsBits) {
  SetTask(8, 300, 1);
  spec_.args[1].role = Role::kInOut;
  spec_.args[1].fill.kind = Fill::Kind::kZeros;
  for (const bool atomics : {true, false}) {
    SetOracle(atomics ? "for (int i = t; i < cols; i += 128) atomicAdd(y, x[i]);" : kInOrder);
    auto oracle = OracleStore::Make(gpu_, *compiler_, *kernels_, spec_).value();
    const TaskBuffers buffers = TaskBuffers::Allocate(gpu_, spec_, spec_.dims, 0).value();
    const InputInstance instance{InputFamily::kNormal, 3, false};
    ASSERT_TRUE(buffers.DrawInputs(*kernels_, instance));
    ASSERT_TRUE(oracle->Get(buffers, instance));
    EXPECT_EQ(oracle->Repeats(), !atomics);
  }
}

TEST_F(UserReferenceTest, SixteenBitResultsThatAreBiasedAreWrong) {
  SetTask(64, 512, 512, DType::kBFloat16);
  SetOracle(std::string(kEach) + "__float2bfloat16(1.7f * (float)x[i]);");
  ExpectRight(std::string(kEach) + "__float2bfloat16((float)x[i] * 0.7f + (float)x[i]);");
  ExpectWrong(std::string(kEach) + "__float2bfloat16(1.7f * 1.012f * (float)x[i]);");
  ExpectWrong(std::string(kEach) + "__float2bfloat16((i == 5 ? 2.0f : 1.7f) * (float)x[i]);");
  SetTask(64, 512, 512, DType::kFloat16);
  SetOracle(std::string(kEach) + "__float2half(1.7f * (float)x[i]);");
  ExpectWrong(std::string(kEach) + "__float2half_rz(1.7f * (float)x[i]);");
}

TEST_F(UserReferenceTest, WithoutAShadowTheKernelsOwnResultsServe) {
  SetTask(64, 512, 512);
  // Rounds to quarters by adding a large number: what is carried in float64 is another function.
  const std::string tricks = std::string(kEach) + "(x[i] + 3145728.0f) - 3145728.0f;";
  SetOracle(tricks);
  const Verdict verdict = Judge(tricks);
  EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
  EXPECT_THAT(verdict.checks.back().detail, HasSubstr("with its own spread"));
  ExpectWrong(std::string(kEach) + "x[i];");
}

/// The reference calls a function with floats, at which the values in float64 end: what the kernel
/// errs before and in it would be no error, and a better kernel would be refused.
TEST_F(UserReferenceTest, WhereFloat64DoesNotPassTheKernelsOwnResultsServe) {
  SetTask(64, 512, 512);
  const std::string called =
      "struct Call { static __device__ __noinline__ float third(float v) { return v / 3.f; } };\n" +
      std::string(kEach) + "Call::third(__fdividef(x[i], 7.f)) + 1.f;";
  SetOracle(called);
  const Verdict verdict = Judge(called);
  EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
  EXPECT_THAT(verdict.checks.back().detail,
              testing::AllOf(HasSubstr("with its own spread"), HasSubstr("ld.param"),
                             HasSubstr("of its PTX")));
  ExpectRight(std::string(kEach) + "(float)((double)x[i] / 21 + 1);");
  ExpectWrong(std::string(kEach) + "x[i] / 20.9f + 1.f;");
}

}  // namespace
}  // namespace atunner
