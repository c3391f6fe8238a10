// Functions of CUDA's library: their shadows are the true functions to about the accuracy of the
// approximation that the library's code uses, and where an instruction computes them, to double.
#include <algorithm>
#include <functional>
#include <numbers>

#include "atunner/shadow/shadow_run_test.h"

namespace atunner::shadow {
namespace {

constexpr double kUlp = 0x1p-23;  // of a float32 between 1 and 2

struct FunctionCase {
  std::string name, expression;  ///< of v
  std::function<double(double)> truth;
  double from = -4, to = 4;
  double tolerance = 2 * kUlp;  ///< relative; absolute below `unit`
  double unit = 0;
};
void PrintTo(const FunctionCase& function, std::ostream* out) { *out << function.name; }

class ShadowFunctionTest : public ShadowTest, public testing::WithParamInterface<FunctionCase> {};

/// Arguments are computed, so that their twins differ from the original's values.
TEST_P(ShadowFunctionTest, IsTheTrueFunction) {
  const FunctionCase& c = GetParam();
  constexpr size_t kCount = 2048;
  std::vector<double> x(kCount);
  for (size_t i = 0; i < kCount; ++i)
    x[i] = 3 * (c.from + (c.to - c.from) * (static_cast<double>(i) + 0.5) / kCount);
  const TestTensor input = Floats(x);
  const auto results = Run(
      "__device__ float approximate_tanh(float v) {\n"
      "  asm(\"tanh.approx.f32 %0, %0;\" : \"+f\"(v));\n  return v;\n}\n"
      "extern \"C\" __global__ void k(const float* x, float* y, int n) {\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  const float v = x[i] / 3.f;\n  y[i] = " +
          c.expression + ";\n}\n",
      {input, Zeros(DType::kFloat32, kCount)}, {{.grid = 8, .block = 256}});
  ExpectSameBits(results);
  double worst = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double truth = c.truth(input[i] / 3);
    const double scale = std::max(std::abs(truth), c.unit);
    const double error = std::abs(results[1].twins[i] - truth) / scale;
    worst = std::max(worst, error);
    ASSERT_LE(error, c.tolerance) << c.name << "(" << input[i] / 3 << ") is " << truth << ", not "
                                  << results[1].twins[i];
  }
  RecordProperty("worst_in_ulp", std::to_string(worst / kUlp));
}

constexpr double kExact = 1e-13;

INSTANTIATE_TEST_SUITE_P(
    Library, ShadowFunctionTest,
    testing::Values(
        FunctionCase{"expf", "expf(v)", [](double v) { return std::exp(v); }, -80, 80},
        FunctionCase{"exp2f", "exp2f(v)", [](double v) { return std::exp2(v); }, -80, 80},
        FunctionCase{"exp10f", "exp10f(v)", [](double v) { return std::pow(10, v); }, -30, 30},
        FunctionCase{"expm1f", "expm1f(v)", [](double v) { return std::expm1(v); }, -2, 5},
        FunctionCase{"logf", "logf(v)", [](double v) { return std::log(v); }, 0.001, 40, 2 * kUlp,
                     1},
        FunctionCase{"log2f", "log2f(v)", [](double v) { return std::log2(v); }, 0.001, 40,
                     2 * kUlp, 1},
        FunctionCase{"log10f", "log10f(v)", [](double v) { return std::log10(v); }, 0.001, 40,
                     2 * kUlp, 1},
        FunctionCase{"log1pf", "log1pf(v)", [](double v) { return std::log1p(v); }, -0.9, 10,
                     2 * kUlp, 0.1},
        FunctionCase{"sinf", "sinf(v)", [](double v) { return std::sin(v); }, -100, 100, 2 * kUlp,
                     0.1},
        FunctionCase{"cosf", "cosf(v)", [](double v) { return std::cos(v); }, -100, 100, 2 * kUlp,
                     0.1},
        FunctionCase{"tanf", "tanf(v)", [](double v) { return std::tan(v); }, -1.4, 1.4},
        FunctionCase{"tanhf", "tanhf(v)", [](double v) { return std::tanh(v); }},
        FunctionCase{"sinhf", "sinhf(v)", [](double v) { return std::sinh(v); }},
        FunctionCase{"atanf", "atanf(v)", [](double v) { return std::atan(v); }},
        FunctionCase{"asinf", "asinf(v)", [](double v) { return std::asin(v); }, -0.99, 0.99},
        FunctionCase{"acosf", "acosf(v)", [](double v) { return std::acos(v); }, -0.99, 0.99},
        FunctionCase{"erff", "erff(v)", [](double v) { return std::erf(v); }},
        FunctionCase{"erfcf", "erfcf(v)", [](double v) { return std::erfc(v); }, -4, 4, 4 * kUlp},
        FunctionCase{"powf", "powf(v, 1.7f)", [](double v) { return std::pow(v, double{1.7f}); },
                     0.01, 50, 3 * kUlp},
        FunctionCase{"cbrtf", "cbrtf(v)", [](double v) { return std::cbrt(v); }, -50, 50},
        FunctionCase{"fmodf", "fmodf(v, 1.3f)", [](double v) { return std::fmod(v, double{1.3f}); },
                     0.01, 50, kExact, 1},
        FunctionCase{"gelu", "0.5f * v * (1.f + erff(v * 0.70710678f))",
                     [](double v) { return 0.5 * v * (1 + std::erf(v * double{0.70710678f})); }, -3,
                     4, 4 * kUlp, 0.1},
        FunctionCase{"silu", "v / (1.f + __expf(-v))",
                     [](double v) { return v / (1 + std::exp2(-v * double{1.44269504f})); }, -20,
                     20, 2 * kUlp}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Instructions, ShadowFunctionTest,
    testing::Values(
        FunctionCase{"ex2", "__expf(v)",
                     [](double v) { return std::exp2(v * double{1.44269504f}); }, -50, 50, kExact},
        FunctionCase{"lg2", "__log2f(v)", [](double v) { return std::log2(v); }, 0.001, 40, kExact,
                     1e-3},
        FunctionCase{"sin", "__sinf(v)", [](double v) { return std::sin(v); }, -1000, 1000, kExact,
                     1},
        FunctionCase{"cos", "__cosf(v)", [](double v) { return std::cos(v); }, -1000, 1000, kExact,
                     1},
        FunctionCase{"sqrt", "sqrtf(v)", [](double v) { return std::sqrt(v); }, 0.001, 40, kExact},
        FunctionCase{"rsqrt", "rsqrtf(v)", [](double v) { return 1 / std::sqrt(v); }, 0.001, 40,
                     kExact},
        FunctionCase{"divide", "__fdividef(1.f, v)", [](double v) { return 1 / v; }, 0.001, 40,
                     kExact},
        FunctionCase{"tanh", "approximate_tanh(v)", [](double v) { return std::tanh(v); }, -6, 6,
                     kExact}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace atunner::shadow
