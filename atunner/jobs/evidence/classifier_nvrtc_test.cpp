// The classifier on kernels that each show one bottleneck. The label is proved by removing the
// cause: the other kernel must then be predicted faster.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "atunner/compile/shared_compiler_test.h"
#include "atunner/device/profiles.h"
#include "atunner/intake/bare/bare_source.h"
#include "atunner/jobs/evidence/explain.h"
#include "atunner/jobs/evidence/profile.h"

namespace atunner::jobs {
namespace {

/// Two kernels that compute the same kind of result on one million floats.
struct Pair {
  std::string label;
  std::string with;     ///< body of the kernel that has the cause
  std::string without;  ///< body of one that does not
  std::string launch = "(n + 255) / 256, 256";
  std::string launch_without = "";  ///< "": the same
};

const std::string kIndex = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; ";
const std::string kRows = "int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= 1024) return; ";
const std::string kTwoAxes =
    "int a = blockIdx.x * 16 + threadIdx.x, b = blockIdx.y * 16 + threadIdx.y; ";
const std::string kGrid2 = "dim3(64, 64), dim3(16, 16)";

std::string Tile(int columns) {
  return fmt::format(
      "__shared__ float t[32][{}]; int l = threadIdx.x % 32; "
      "for (int k = threadIdx.x / 32; k < 32; k += 8) t[k][l] = x[blockIdx.x * 1024 + k * 32 + l]; "
      "__syncthreads(); float s = 0; for (int q = 0; q < 64; ++q) for (int k = threadIdx.x / 32; "
      "k < 32; k += 8) s += t[l][(k + q) % 32]; y[blockIdx.x * 256 + threadIdx.x] = s;",
      columns);
}

std::string Chain(const std::string& type, const std::string& suffix) {
  return kIndex + type + " v = x[i]; for (int k = 0; k < 200; ++k) v = v * 1.0001" + suffix +
         " + 0.5" + suffix + "; y[i] = v;";
}

const std::vector<Pair> kPairs = {
    {"uncoalesced", kTwoAxes + "y[a * 1024 + b] = 2 * x[a * 1024 + b];",
     kTwoAxes + "y[b * 1024 + a] = 2 * x[b * 1024 + a];", kGrid2},
    {"uncoalesced",
     kRows + "float s = 0; for (int j = 0; j < 1024; ++j) s += x[r * 1024 + j]; "
             "y[r] = s;",
     kRows + "float s = 0; for (int j = 0; j < 1024; ++j) s += x[j * 1024 + r]; y[r] = s;",
     "16, 64"},
    {"uncoalesced", kIndex + "y[i] = x[(i * 33) % n];", kIndex + "y[i] = x[i];"},
    {"uncoalesced", kIndex + "y[(i * 33) % n] = x[i];", kIndex + "y[i] = x[i];"},
    {"bank-conflicts", Tile(32), Tile(33), "n / 1024, 256"},
    {"float64", Chain("double", ""), Chain("float", "f")},
    {"float64", kIndex + "y[i] = (float)sqrt(x[i] * x[i] + 1.0) * 3.0 + exp((double)x[i]);",
     kIndex + "y[i] = sqrtf(x[i] * x[i] + 1.0f) * 3.0f + expf(x[i]);"},
    {"divergence",
     kIndex + "float v = x[i]; if (i % 32 < 4) for (int k = 0; k < 500; ++k) v = v * 1.01f + k; "
              "y[i] = v;",
     kIndex + "float v = x[i]; if (i / 32 % 8 < 1) for (int k = 0; k < 500; ++k) "
              "v = v * 1.01f + k; y[i] = v;"},
    {"small-grid",
     "for (int i = threadIdx.x + blockIdx.x * 256; i < n; i += 1024) y[i] = 2 * x[i];",
     "for (int i = threadIdx.x + blockIdx.x * 256; i < n; i += 256 * gridDim.x) y[i] = 2 * x[i];",
     "4, 256", "512, 256"},
    {"small-grid",
     "float v = x[threadIdx.x]; for (int k = 0; k < 4000; ++k) v = v * 1.01f + k; y[blockIdx.x * "
     "256 "
     "+ threadIdx.x] = v;",
     "float v = x[threadIdx.x]; for (int k = 0; k < 40; ++k) v = v * 1.01f + k; y[blockIdx.x * 256 "
     "+ "
     "threadIdx.x] = v;",
     "8, 256", "800, 256"},
    {"memory-bound", kIndex + "y[i] = 2 * x[i];",
     "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n / 4) y[i] = 2 * x[i];"},
    {"compute-bound",
     kIndex +
         "float v = x[i], w = v + 1, u = v + 2, z = v + 3; for (int k = 0; k < 400; ++k) { v = "
         "v * w + u; w = w * u + z; u = u * z + v; z = z * v + w; } y[i] = v + w + u + z;",
     kIndex + "float v = x[i], w = v + 1, u = v + 2, z = v + 3; for (int k = 0; k < 40; ++k) { v = "
              "v * w + u; w = w * u + z; u = u * z + v; z = z * v + w; } y[i] = v + w + u + z;"},
    {"latency-bound",
     "int i = threadIdx.x; float v = x[i]; for (int k = 0; k < 2000; ++k) v = x[((int)v & 1) + i]; "
     "y[blockIdx.x * 32 + i] = v;",
     "int i = threadIdx.x; float v = x[i]; for (int k = 0; k < 100; ++k) v = x[((int)v & 1) + i]; "
     "y[blockIdx.x * 32 + i] = v;",
     "2048, 32"},
};

std::string SourceOf(const std::string& body, const std::string& launch) {
  return "__global__ void k(float* y, const float* x, int n) { " + body +
         " }\nint main() {\n  const int n = 1048576;\n  float *y, *x;\n"
         "  cudaMalloc(&y, n * sizeof(float));\n  cudaMalloc(&x, n * sizeof(float));\n  k<<<" +
         launch + ">>>(y, x, n);\n}\n";
}

class Classifier : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    auto made = MakeSharedCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
  }

  Result<LaunchProfile> Profiled(const std::string& source) {
    ATUNNER_TRY(UserKernel kernel, ParseBareSource(source, "k.cu", {}));
    ATUNNER_TRY(const auto schedule, MakeUserTemplate(kernel));
    ATUNNER_TRY(const RenderedKernel rendered, schedule->Render(schedule->Default()));
    Target target;
    ATUNNER_TRY(target.profile, FindProfile("A100"));
    target.calibration = Calibration::Expected(target.profile);
    ATUNNER_TRY(CompileOutcome outcome,
                compiler_->Compile({rendered.source, {"k"}, target.profile.Arch()}));
    if (!outcome.ok()) return Invalid(outcome.error);
    ATUNNER_TRY(
        auto launches,
        ProfileLaunches(schedule->spec(), {*std::move(outcome.module), rendered.plan, {}}, target));
    return launches.front();
  }

  std::unique_ptr<Compiler> compiler_;
};

TEST_P(Classifier, NamesTheCauseThatCostsTime) {
  const Pair& pair = kPairs[GetParam()];
  const auto with = Profiled(SourceOf(pair.with, pair.launch));
  ASSERT_TRUE(with) << with.error().ToString();
  const evidence::Finding& finding = with->findings.front();
  EXPECT_EQ(evidence::Name(finding.bottleneck), pair.label) << finding.evidence;
  const auto without = Profiled(
      SourceOf(pair.without, pair.launch_without.empty() ? pair.launch : pair.launch_without));
  ASSERT_TRUE(without) << without.error().ToString();
  const double gain = with->estimate.time_ns / without->estimate.time_ns;
  EXPECT_GT(gain, 1.1) << with->estimate.time_ns << " to " << without->estimate.time_ns;
  RecordProperty("expected", fmt::format("{:.2f}", finding.gain.value_or(0)));
  RecordProperty("gain", fmt::format("{:.2f}", gain));
}

INSTANTIATE_TEST_SUITE_P(Kernels, Classifier, testing::Range<size_t>(0, kPairs.size()));

}  // namespace
}  // namespace atunner::jobs
