// Tasks whose results cancel or are divided by numbers near zero, so that one run of the baseline
// says little about the error of other kernels. Correct kernels must pass on every seed; kernels of
// lower precision, or with a missing term, on none.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "atunner/graph/text.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/verify/verifier.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

KernelSpec TaskOf(const std::string& graph) {
  return SpecOfGraph(graph::Parse(graph, "test.atg").value(), {}).value();
}

/// The difference of two equal sums: exactly zero, but a rounding error in a kernel that adds them
/// up in two orders. The gradient of attention is like this for a query that sees one key.
KernelSpec Differences() {
  return TaskOf(R"(
graph differences
input a: float32[24, 16]
input b: float32[24, 16]
product = a * b
dot = reduce_sum(product, axes=[1], keep=true)
total = reduce_sum(dot, axes=[1], keep=true)
y = a * (dot - total)
output y
)");
}

/// The same with a small term that does not cancel.
KernelSpec NearlyEqual() {
  return TaskOf(R"(
graph nearly_equal
input a: float32[24, 16]
input b: float32[24, 16]
product = a * b
dot = reduce_sum(product, axes=[1], keep=true)
total = reduce_sum(dot, axes=[1], keep=true)
y = a * (dot - total + b * 1e-7)
output y
)");
}

/// Sums divided by numbers of which some are near zero, as in the gradient of a running product.
KernelSpec Quotients() {
  return TaskOf(R"(
graph quotients
input a: float32[24, 64]
input b: float32[24, 64]
product = a * b
sum = scan_sum(product, axis=1)
y = sum / a
output y
)");
}

enum class Flaw { kNone, kHalf, kTf32, kMissingTerm };
constexpr Flaw kFlaws[] = {Flaw::kHalf, Flaw::kTf32, Flaw::kMissingTerm};

/// Device function reversed(a, b, n), the sum of n products from the last to the first, with a
/// flaw.
std::string Sums(Flaw flaw) {
  const bool half = flaw == Flaw::kHalf;
  return fmt::format(
      "#include <cuda_fp16.h>\n"
      "__device__ float factor(float v) {{ return {}; }}\n"
      "__device__ float reversed(const float* a, const float* b, int n) {{\n"
      "  {} s = {};\n  for (int i = n; i-- > {};) s = {};\n  return {};\n}}\n",
      flaw == Flaw::kTf32 ? "__uint_as_float((__float_as_uint(v) + 0x1000u) & ~0x1fffu)" : "v",
      half ? "__half" : "float", half ? "__float2half(0.f)" : "0",
      flaw == Flaw::kMissingTerm ? "n / 2 + 1" : "0",
      half ? "__hfma(__float2half(a[i]), __float2half(b[i]), s)"
           : "s + factor(a[i]) * factor(b[i])",
      half                         ? "__half2float(s)"
      : flaw == Flaw::kMissingTerm ? "s + reversed_rest(a, b, n / 2)"
                                   : "s");
}

class BudgetReevaluationTest : public VirtualGpuTest {
 protected:
  /// A kernel with one thread per row; in `body` a, b and y point to the start of the row.
  CandidateKernel Kernel(Flaw flaw, int columns, const std::string& body) {
    LaunchStep step{.entry = "k", .grid = {24, 1, 1}, .block = {32, 1, 1}};
    step.args = {ArgBinding::Tensor("a"), ArgBinding::Tensor("b"), ArgBinding::Tensor("y")};
    return Compile(
        fmt::format("__device__ float reversed_rest(const float* a, const float* b, int n) {{\n  "
                    "float s = 0;\n"
                    "  while (n-- > 0) s += a[n] * b[n];\n  return s;\n}}\n{}"
                    "extern \"C\" __global__ void k(const float* a, const float* b, float* y) {{\n"
                    "  if (threadIdx.x) return;\n  a += blockIdx.x * {}; b += blockIdx.x * {}; y "
                    "+= blockIdx.x * {};\n"
                    "{}}}\n",
                    Sums(flaw), columns, columns, columns, body),
        {.steps = {step}});
  }
  CandidateKernel Difference(Flaw flaw, const std::string& more) {
    return Kernel(flaw, 16,
                  "  float dot = 0;\n  for (int i = 0; i < 16; ++i) dot += a[i] * b[i];\n"
                  "  const float total = reversed(a, b, 16);\n"
                  "  for (int i = 0; i < 16; ++i) y[i] = a[i] * (dot - total" +
                      more + ");\n");
  }
  CandidateKernel Quotient(Flaw flaw) {
    return Kernel(flaw, 64,
                  "  for (int i = 0; i < 64; ++i) y[i] = reversed(a, b, i + 1) / a[i];\n");
  }

  static constexpr uint64_t kManySeeds = 30;
  static constexpr uint64_t kSomeSeeds = 6;
};

TEST_F(BudgetReevaluationTest, CancellingSumsMayBeAddedUpInAnyOrder) {
  EXPECT_THAT(Refusals(Differences(), Difference(Flaw::kNone, ""), kManySeeds), testing::IsEmpty());
  for (const Flaw flaw : kFlaws)
    EXPECT_EQ(Refusals(Differences(), Difference(flaw, ""), kSomeSeeds).size(), kSomeSeeds)
        << static_cast<int>(flaw);
}

TEST_F(BudgetReevaluationTest, NearlyCancellingSumsToo) {
  const std::string rest = " + b[i] * 1e-7f";
  EXPECT_THAT(Refusals(NearlyEqual(), Difference(Flaw::kNone, rest), kManySeeds),
              testing::IsEmpty());
  for (const Flaw flaw : kFlaws)
    EXPECT_EQ(Refusals(NearlyEqual(), Difference(flaw, rest), kSomeSeeds).size(), kSomeSeeds)
        << static_cast<int>(flaw);
}

TEST_F(BudgetReevaluationTest, QuotientsByTinyNumbersErrByMoreThanOneRunShows) {
  EXPECT_THAT(Refusals(Quotients(), Quotient(Flaw::kNone), kManySeeds), testing::IsEmpty());
  for (const Flaw flaw : kFlaws)
    EXPECT_EQ(Refusals(Quotients(), Quotient(flaw), kSomeSeeds).size(), kSomeSeeds)
        << static_cast<int>(flaw);
}

/// A softmax in bfloat16 with a weighted sum. Kernels may round the weights before or after
/// dividing by their sum.
KernelSpec WeightsIn16Bits() {
  return TaskOf(R"(
graph weights
input a: bfloat16[24, 16]
input b: bfloat16[24, 16]
wide = cast(a, float32)
m = reduce_max(wide, axes=[1], keep=true)
e = exp(wide - m)
z = reduce_sum(e, axes=[1], keep=true)
p = cast(e / z, bfloat16)
y = contract(p, b, equation="rk,sk->rs")
output y
)");
}

std::string Weighing(const std::string& sum, const std::string& weight, int first,
                     const std::string& result = "s / z") {
  return fmt::format(
      "#include <cuda_bf16.h>\n__device__ float narrow(float v) {{ return "
      "__bfloat162float(__float2bfloat16(v)); }}\n"
      "__device__ float narrower(float v) {{ return __uint_as_float((__float_as_uint(v) + "
      "0x80000u) & ~0xfffffu); }}\n"
      "extern \"C\" __global__ void k(const __nv_bfloat16* a, const __nv_bfloat16* b, "
      "__nv_bfloat16* y) {{\n"
      "  if (threadIdx.x) return;\n  const int r = blockIdx.x;\n  float e[16], m = -1e30f, z = 0;\n"
      "  for (int i = 0; i < 16; ++i) m = fmaxf(m, e[i] = __bfloat162float(a[r * 16 + i]));\n"
      "  for (int i = 0; i < 16; ++i) z += e[i] = expf(e[i] - m);\n"
      "  for (int c = 0; c < 24; ++c) {{\n    float s = 0;\n"
      "    for (int i = {}; i < 16; ++i) s = {}(s + {}(e[i]) * __bfloat162float(b[c * 16 + i]));\n"
      "    y[r * 24 + c] = __float2bfloat16({});\n  }}\n}}\n",
      first, sum, weight, result);
}

TEST_F(BudgetReevaluationTest, IntermediatesIn16BitsMayBeRoundedAtDifferentPlaces) {
  const KernelSpec spec = WeightsIn16Bits();
  LaunchStep step{.entry = "k", .grid = {24, 1, 1}, .block = {32, 1, 1}};
  step.args = {ArgBinding::Tensor("a"), ArgBinding::Tensor("b"), ArgBinding::Tensor("y")};
  const auto refusals = [&](const std::string& text, uint64_t seeds) {
    return Refusals(spec, Compile(text, {.steps = {step}}), seeds);
  };
  EXPECT_THAT(refusals(Weighing("", "narrow", 0), kManySeeds), testing::IsEmpty());
  EXPECT_THAT(refusals(Weighing("", "", 0), kManySeeds), testing::IsEmpty());
  EXPECT_EQ(refusals(Weighing("narrower", "", 0), kSomeSeeds).size(), kSomeSeeds)
      << "sums of 3 bits";
  EXPECT_EQ(refusals(Weighing("narrow", "narrower", 0), kSomeSeeds).size(), kSomeSeeds)
      << "weights of 3 bits";
  EXPECT_EQ(refusals(Weighing("", "narrow", 1), kSomeSeeds).size(), kSomeSeeds) << "a missing term";
}

}  // namespace
}  // namespace atunner
