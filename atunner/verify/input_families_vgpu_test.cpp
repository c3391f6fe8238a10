// Users' kernels that are wrong on certain inputs only, and right variants beside them.
#include <gmock/gmock.h>

#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

using testing::HasSubstr;

/// A task of a user: `y[i] = …` for 1024 elements, with the kernel as given as its own oracle.
class InputFamiliesTest : public VirtualGpuTest {
 protected:
  struct Task {
    std::string type = "float";
    DType dtype = DType::kFloat32;
    Fill fill = {};
    Role role = Role::kInput;  ///< of x; kInOut: the result is x itself
  };

  static std::string Source(const Task& task, const std::string& statement) {
    return fmt::format(
        "extern \"C\" __global__ void k({}{}* x, {}* y, int n) {{\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n  {}\n}}\n",
        task.role == Role::kInput ? "const " : "", task.type, task.type, statement);
  }

  static KernelSpec Spec(const Task& task, const std::string& statement) {
    KernelSpec spec;
    spec.name = "task";
    spec.dims = {{"n", 1024}};
    const std::vector<Expr> shape = {Expr::MustParse("n")};
    spec.args = {{"x", task.role, task.dtype, shape, {}, task.fill},
                 {"y", Role::kOutput, task.dtype, shape, {}, {}}};
    spec.oracle.kind = Oracle::Kind::kKernel;
    spec.oracle.kernel = RenderedKernel{};
    spec.oracle.kernel->source.text = Source(task, statement);
    spec.oracle.kernel->plan = Plan();
    return spec;
  }

  static LaunchPlan Plan() {
    LaunchStep step{.entry = "k", .grid = {4, 1, 1}, .block = {256, 1, 1}};
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y"),
                 ArgBinding::Scalar(DType::kInt32, Expr::MustParse("n"))};
    return {.steps = {step}};
  }

  Verdict Judge(const Task& task, const std::string& given, const std::string& candidate) {
    auto verifier = Verifier::Make(gpu_, *compiler_, Spec(task, given), {});
    EXPECT_TRUE(verifier.has_value()) << verifier.error().ToString();
    const CandidateKernel kernel = Compile(Source(task, candidate), Plan());
    auto verified = (*verifier)->Verify(std::make_shared<const CandidateKernel>(kernel));
    EXPECT_TRUE(verified.has_value()) << verified.error().ToString();
    if (const auto* refused = std::get_if<Verdict>(&*verified)) return *refused;
    return std::get<VerifiedKernel>(*verified).verdict();
  }

  void ExpectRefused(const Task& task, const std::string& given, const std::string& wrong) {
    EXPECT_EQ(Judge(task, given, given).kind, VerdictKind::kCorrect) << given;
    const Verdict verdict = Judge(task, given, wrong);
    std::string passed;
    for (const CheckRecord& record : verdict.checks)
      passed += fmt::format("\n{} {} {} {}", record.check, record.family, record.bound,
                            record.error);
    EXPECT_FALSE(verdict.correct()) << given << " / " << wrong << passed;
  }
  void ExpectAccepted(const Task& task, const std::string& given, const std::string& right) {
    const Verdict verdict = Judge(task, given, right);
    EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << right << ": " << verdict.reason;
  }
};

TEST_F(InputFamiliesTest, ThresholdsOfTheKernelAsGivenAreReached) {
  ExpectRefused({}, "y[i] = x[i] > 300.0f ? 300.0f : x[i];", "y[i] = x[i];");
  ExpectRefused({}, "y[i] = x[i] * 0.5f > 123456.0f ? 0.0f : x[i];", "y[i] = x[i];");
  ExpectRefused({}, "y[i] = x[i] == 777.25f ? 1.0f : x[i];", "y[i] = x[i];");
  ExpectRefused({}, "y[i] = x[i] < -5e20f ? 1.0f : 2.0f * x[i];", "y[i] = 2.0f * x[i];");
  ExpectAccepted({}, "y[i] = x[i] > 300.0f ? 300.0f : x[i];",
                 "float v = x[i]; if (v > 300.0f) v = 300.0f; y[i] = v;");
}

TEST_F(InputFamiliesTest, SquaresThatOverflowAreReached) {
  const std::string given = "y[i] = hypotf(x[i], 0.5f * x[(i + 1) % n]);";
  ExpectRefused({}, given,
                "float a = x[i], b = 0.5f * x[(i + 1) % n]; y[i] = sqrtf(a * a + b * b);");
  ExpectAccepted({}, given,
                 "float a = fabsf(x[i]), b = fabsf(0.5f * x[(i + 1) % n]);"
                 "float most = a > b ? a : b, q = (a > b ? b : a) / most;"
                 "y[i] = most == 0 ? 0.0f : most * sqrtf(1.0f + q * q);");
}

TEST_F(InputFamiliesTest, ValuesThatOnlyTheCandidateTreatsApartAreReached) {
  ExpectRefused({}, "y[i] = 2.0f * x[i];", "y[i] = x[i] == 1234.5f ? 0.0f : 2.0f * x[i];");
  ExpectRefused({}, "y[i] = 2.0f * x[i];",
                "y[i] = __float_as_uint(x[i]) == 0x41a4c000u ? 0.0f : 2.0f * x[i];");
  const Task ints{"int", DType::kInt32};
  ExpectRefused(ints, "y[i] = x[i] ^ 3;", "y[i] = x[i] == 987654 ? 0 : x[i] ^ 3;");
}

// Candidates share inputs that hold the constants of all. One whose constant makes the results
// overflow must not hide the constants of the next.
TEST_F(InputFamiliesTest, ConstantsOfAnotherCandidateHideNone) {
  const Task task;
  const std::string given = "y[i] = expf(x[i]);";
  auto verifier = Verifier::Make(gpu_, *compiler_, Spec(task, given), {});
  ASSERT_TRUE(verifier.has_value()) << verifier.error().ToString();
  const auto correct = [&](const std::string& statement) {
    const CandidateKernel kernel = Compile(Source(task, statement), Plan());
    auto verified = (*verifier)->Verify(std::make_shared<const CandidateKernel>(kernel));
    EXPECT_TRUE(verified.has_value()) << verified.error().ToString();
    return std::holds_alternative<VerifiedKernel>(*verified);
  };
  EXPECT_TRUE(correct("y[i] = x[i] == 5000.0f ? __int_as_float(0x7f800000) : expf(x[i]);"));
  EXPECT_FALSE(correct("y[i] = x[i] == 7.25f ? 0.0f : expf(x[i]);"));
  EXPECT_TRUE(correct("y[i] = x[i] == 7.25f ? expf(7.25f) : expf(x[i]);"));
}

TEST_F(InputFamiliesTest, IntegersSpanTheirType) {
  const Task ints{"int", DType::kInt32};
  ExpectRefused(ints, "y[i] = x[i] * x[i] * x[i];",
                "const int v = (signed char)x[i]; y[i] = v * v * v;");
  ExpectRefused(ints, "y[i] = __popc(x[i]);",
                "const char t[16] = {0,1,1,2,1,2,2,3,1,2,2,3,2,3,3,4};"
                "y[i] = t[x[i] & 15] + (x[i] < 0 ? 28 : 0);");
  ExpectRefused(ints, "y[i] = abs(x[i]) >> 31;", "y[i] = 0;");
  ExpectAccepted(ints, "y[i] = __popc(x[i]);",
                 "unsigned v = x[i]; int c = 0; while (v) { v &= v - 1; ++c; } y[i] = c;");
  const Task bytes{"unsigned char", DType::kUInt8};
  ExpectRefused(bytes, "y[i] = x[i] / 100;", "y[i] = x[i] > 99;");
  const Task longs{"long long", DType::kInt64};
  ExpectRefused(longs, "y[i] = x[i] >> 40;", "y[i] = (int)x[i] >> 31;");
}

TEST_F(InputFamiliesTest, InfinitiesGiveWhatTheKernelAsGivenGives) {
  ExpectRefused({}, "y[i] = 1.0f / (1.0f + x[i] * x[i]);",
                "y[i] = 1.0f / (1.0f + x[i] * x[i]) + (x[i] - x[i]);");
  ExpectRefused({}, "y[i] = 2.0f * x[i];", "y[i] = fminf(2.0f * x[i], 3e38f);");
  ExpectAccepted({}, "y[i] = x[i] / (1.0f + fabsf(x[i]));",
                 "const float a = fabsf(x[i]); y[i] = a > 1e30f ? copysignf(1.0f, x[i]) "
                 ": x[i] / (1.0f + a);");
}

TEST_F(InputFamiliesTest, ZerosGiveNumbers) {
  ExpectRefused({}, "y[i] = x[i] == 0.0f ? 0.0f : x[i] / fabsf(x[i]) * 3.0f;",
                "y[i] = x[i] / fabsf(x[i]) * 3.0f;");
}

TEST_F(InputFamiliesTest, ConstantAndAscendingFillsVary) {
  const Task iota{"int", DType::kInt32, {.kind = Fill::Kind::kIota, .path = {}}};
  ExpectRefused(iota, "y[i] = x[i] + 1;", "y[i] = i + 1;");
  const Task constant{
      "float", DType::kFloat32, {.kind = Fill::Kind::kConstant, .low = 2.5, .path = {}}};
  ExpectRefused(constant, "y[i] = x[i] * (i % 7);", "y[i] = 2.5f * (i % 7);");
  const Task sum{"float", DType::kFloat32, {.kind = Fill::Kind::kZeros, .path = {}}, Role::kInOut};
  ExpectRefused(sum, "x[i] += i % 5; y[i] = i % 3 + x[i];", "x[i] = i % 5; y[i] = i % 3 + x[i];");
}

TEST_F(InputFamiliesTest, ExactFillsArePromises) {
  const Task iota{"int", DType::kInt32, {.kind = Fill::Kind::kIota, .path = "exact"}};
  ExpectAccepted(iota, "y[i] = x[i] + 1;", "y[i] = i + 1;");
}

// Flags and counters are no data: a kernel may rely on their being zero.
TEST_F(InputFamiliesTest, StatesThatDecideStayAsTheyAre) {
  const Task flags{"int", DType::kInt32, {.kind = Fill::Kind::kZeros, .path = {}}, Role::kInOut};
  ExpectAccepted(flags, "if (x[i] == 0) { x[i] = 1; y[i] = i; } else { y[i] = -i; }",
                 "x[i] = 1; y[i] = i;");
}

TEST_F(InputFamiliesTest, IndicesStayWithinWhatTheKernelBears) {
  const Task indices{
      "int", DType::kInt32, {.kind = Fill::Kind::kUniform, .low = 0, .high = 1024, .path = {}}};
  ExpectAccepted(indices, "y[i] = x[x[i]];", "const int at = x[i]; y[i] = x[at];");
  ExpectRefused(indices, "y[i] = x[x[i]];", "y[i] = x[x[i] % 1023];");
  const Task counts{"unsigned", DType::kUInt32};
  ExpectAccepted(counts, "y[i] = x[(x[i] + i) % n];", "y[i] = x[(i + x[i]) % n];");
  ExpectAccepted(counts, "unsigned s = 0; for (unsigned j = 0; j < x[i]; ++j) s += j; y[i] = s;",
                 "const unsigned c = x[i]; y[i] = c == 0 ? 0 : c * (c - 1) / 2;");
}

TEST_F(InputFamiliesTest, InputsThatTheKernelAsGivenDoesNotBearAreNotCompared) {
  const std::string trap = "if (x[i] > 1000000) __trap(); y[i] = x[i] + 1;";
  const Verdict verdict = Judge({"int", DType::kInt32}, trap, trap);
  EXPECT_EQ(verdict.kind, VerdictKind::kCorrect) << verdict.reason;
  EXPECT_THAT(verdict.checks,
              testing::Contains(
                  testing::AllOf(testing::Field(&CheckRecord::check, "not compared"),
                                 testing::Field(&CheckRecord::detail, HasSubstr("does not run")))));
}

}  // namespace
}  // namespace atunner
