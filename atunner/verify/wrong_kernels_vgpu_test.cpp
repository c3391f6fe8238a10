// Kernels whose errors are small or hard to notice. Each must be refused on every seed, and the
// same kernel without the flaw on none.
#include <gmock/gmock.h>

#include "atunner/graph/text.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"
#include "atunner/verify/verifier.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner {
namespace {

class WrongKernelsTest : public VirtualGpuTest {
 protected:
  static KernelSpec TaskOf(const char* op, DType dtype, std::vector<int64_t> shape) {
    return FindOperator(op)->Instantiate({{std::move(shape)}, dtype, {}}).value();
  }
  void Passes(const KernelSpec& spec, int rows, const std::string& body) {
    EXPECT_THAT(Refusals(spec, KernelOfRows(spec, rows, body), kManySeeds), testing::IsEmpty())
        << body;
  }
  void Fails(const KernelSpec& spec, int rows, const std::string& body) {
    EXPECT_EQ(Refusals(spec, KernelOfRows(spec, rows, body), kSomeSeeds).size(), kSomeSeeds)
        << body;
  }

  static constexpr uint64_t kManySeeds = 20;
  static constexpr uint64_t kSomeSeeds = 5;
};

constexpr const char* kNarrow = "#define NARROW(v) __bfloat162float(__float2bfloat16(v))\n";

std::string LayerNorm(
    const std::string& mean, const std::string& inverse, const std::string& scaled,
    const std::string& result = "__float2bfloat16(s + __bfloat162float(bias[i]))") {
  return std::string("\n") + kNarrow +
         "  float mean = 0, var = 0;\n  x += row * 96; y += row * 96;\n"
         "  for (int i = 0; i < 96; ++i) " +
         mean +
         "\n  mean /= 96;\n"
         "  for (int i = 0; i < 96; ++i) { const float d = __bfloat162float(x[i]) - mean; var += d "
         "* d; }\n"
         "  const float inverse = " +
         inverse +
         ";\n  for (int i = 0; i < 96; ++i) {\n    const float d = __bfloat162float(x[i]) - mean;\n"
         "    const float s = " +
         scaled + ";\n    y[i] = " + result + ";\n  }\n";
}

/// A bias below four roundings per element: only the aggregate test shows it.
TEST_F(WrongKernelsTest, WhatErrsByAFewRoundingsEverywhereIn16Bits) {
  const KernelSpec spec = TaskOf("layernorm", DType::kBFloat16, {96, 96});
  const std::string sum = "mean += __bfloat162float(x[i]);";
  const std::string inverse = "rsqrtf(var / 96 + 1e-5f)";
  const std::string scaled = "d * inverse * __bfloat162float(weight[i])";
  Passes(spec, 96, LayerNorm(sum, inverse, scaled));
  Passes(spec, 96, LayerNorm(sum, inverse, "NARROW(d * inverse) * __bfloat162float(weight[i])"));
  Fails(spec, 24,
        LayerNorm(sum, inverse, scaled,
                  "__float2bfloat16((s + __bfloat162float(bias[i])) * (1 + 0.006f * ((i * 7 + row "
                  "* 13) % 4 - "
                  "1.5f)))"));
  Fails(spec, 96, LayerNorm(sum, "rsqrtf(var / 95 + 1e-5f)", scaled));
  Fails(spec, 96,
        LayerNorm(sum, inverse, scaled, "__float2bfloat16_rz(s + __bfloat162float(bias[i]))"));
  Fails(spec, 96,
        LayerNorm(sum, inverse, scaled,
                  "__float2bfloat16((s + __bfloat162float(bias[i])) * 1.004f)"));
  Fails(spec, 96, LayerNorm(sum, "rsqrtf(var / 96)", scaled));
  Fails(spec, 96, LayerNorm(sum, inverse, "d * inverse * __bfloat162float(weight[i]) * (i < 95)"));
}

// Rounding a term once more loses the digits of sums that cancel, here of some hundred elements.
TEST_F(WrongKernelsTest, ButTermsMayBeRoundedIn16BitsToo) {
  const KernelSpec spec = TaskOf("layernorm", DType::kBFloat16, {240, 96});
  EXPECT_THAT(
      Refusals(spec,
               KernelOfRows(spec, 240,
                            LayerNorm("mean += __bfloat162float(x[i]);", "rsqrtf(var / 96 + 1e-5f)",
                                      "NARROW(NARROW(d * inverse) * __bfloat162float(weight[i]))")),
               kSomeSeeds),
      testing::IsEmpty());
}

std::string Softmax(const std::string& result, const std::string& more = "") {
  return "  float m = -3e38f, s = 0;\n  const long long at = row * 96;\n"
         "  for (int i = 0; i < 96; ++i) { const float v = (float)x[at + i]; m = v > m || v != v ? "
         "v : m; }\n"
         "  for (int i = 0; i < 96; ++i) s += expf((float)x[at + i] - m);\n"
         "  for (int i = 0; i < 96; ++i) { const float p = expf((float)x[at + i] - m) / s; y[at + "
         "i] = " +
         result + "; }\n" + more;
}

/// Small elements do not show in the norm beside the largest ones, but the number of elements
/// without a right digit does.
TEST_F(WrongKernelsTest, SmallResultsThatAreLeftOut) {
  const KernelSpec softmax = TaskOf("softmax", DType::kBFloat16, {24, 96});
  Passes(softmax, 24, Softmax("p"));
  for (const char* least : {"1e-4f", "1e-5f", "1e-7f"})
    Fails(softmax, 24, Softmax(std::string("p < ") + least + " ? 0.0f : p"));
  const KernelSpec sigmoid = TaskOf("sigmoid", DType::kBFloat16, {24, 96});
  const auto body = [](const std::string& tail) {
    return "  for (int i = row * 96; i < row * 96 + 96; ++i) {\n    const float v = a[i];\n    "
           "y[i] = " +
           tail + "1 / (1 + expf(-v));\n  }\n";
  };
  Passes(sigmoid, 24, body(""));
  Fails(sigmoid, 24, body("v < -9 ? 0.0f : "));
}

/// A NaN in one row must not change the results of other rows.
TEST_F(WrongKernelsTest, NumbersBesideANan) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const KernelSpec spec = TaskOf("softmax", dtype, {24, 96});
    Fails(
        spec, 24,
        Softmax("p",
                "  bool nan = false;\n  for (int i = 0; i < 24 * 96; ++i) nan |= (float)x[i] != "
                "(float)x[i];\n"
                "  if (nan && s == s)\n    for (int i = 0; i < 96; ++i) y[at + i] = 1.0f / 96;\n"));
  }
}

/// A result of one number: the error of another order of summation follows from the number of
/// terms.
TEST_F(WrongKernelsTest, OneNumberOfLowPrecision) {
  const KernelSpec spec = TaskOf("cross_entropy", DType::kFloat32, {24, 64});
  const auto body = [](const std::string& exponential, const std::string& result) {
    return "  float total = 0;\n  for (int r = 0; r < 24; ++r) {\n    float m = -3e38f, s = 0;\n"
           "    for (int i = 0; i < 64; ++i) { const float v = logits[r * 64 + i]; m = v > m || v "
           "!= v ? v : m; }\n"
           "    for (int i = 64; i-- > 0;) s += " +
           exponential +
           ";\n    total += logf(s) + m - logits[r * 64 + labels[r]];\n  }\n  loss[0] = " + result +
           ";\n";
  };
  const std::string exact = "expf(logits[r * 64 + i] - m)";
  Passes(spec, 1, body(exact, "total / 24"));
  Passes(spec, 1, body("__expf(logits[r * 64 + i] - m)", "total * (1 / 24.f)"));
  Fails(spec, 1, body("__bfloat162float(__float2bfloat16(" + exact + "))", "total / 24"));
  Fails(spec, 1, body(exact, "total / 24 * (1 + 1e-5f)"));
}

/// Every input family has its largest elements elsewhere, so that a missing column is noticed.
TEST_F(WrongKernelsTest, AColumnThatIsSeldomAmongTheLargest) {
  const KernelSpec spec = TaskOf("topk", DType::kFloat32, {48, 64});
  const auto body = [](const std::string& columns) {
    return "  int first = -1;\n  for (int r = 0; r < 2; ++r) {\n    float best = 0;\n    int at = "
           "-1;\n"
           "    for (int i = 0; i < " +
           columns +
           "; ++i) {\n      const float v = x[row * 64 + i];\n      if (i == first) continue;\n"
           "      if (at < 0 || v > best || (v != v && best == best)) { best = v; at = i; }\n    "
           "}\n"
           "    values[row * 2 + r] = best;\n    indices[row * 2 + r] = first = at;\n  }\n";
  };
  Passes(spec, 48, body("64"));
  Fails(spec, 48, body("63"));
}

/// If roundings decide most of the result, the verdict is inconclusive for every kernel.
TEST_F(WrongKernelsTest, WhereRoundingsDecideEverythingNobodyIsRight) {
  const KernelSpec spec = SpecOfGraph(graph::Parse(R"(graph g
input x: float32[8, 32]
m = reduce_mean(x, axes=[1], keep=true)
r = round((x - m) * 1e9)
h = round(r * 0.5)
y = r - h * 2
output y
)",
                                                   "test.atg")
                                          .value(),
                                      {})
                              .value();
  const auto body = [](const std::string& result) {
    return "  float s = 0;\n  for (int i = 0; i < 32; ++i) s += x[row * 32 + i];\n"
           "  for (int i = 0; i < 32; ++i) {\n    const float r = rintf((x[row * 32 + i] - s / 32) "
           "* 1e9f);\n"
           "    y[row * 32 + i] = " +
           result + ";\n  }\n";
  };
  for (const char* result : {"r - rintf(r * 0.5f) * 2", "0", "0.3f"}) Fails(spec, 8, body(result));
}

}  // namespace
}  // namespace atunner
