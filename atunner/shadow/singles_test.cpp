// Kernels in float32 and what their shadows make of them.
#include "atunner/shadow/shadow_run_test.h"

namespace atunner::shadow {
namespace {

constexpr int kRows = 4, kColumns = 300;

/// Sums of rows whose elements cancel, of the values as float32 holds them.
std::vector<double> SumsOfRows(const TestTensor& x, double (*of)(double)) {
  std::vector<double> sums(kRows, 0.0);
  for (int i = 0; i < kRows * kColumns; ++i)
    sums[static_cast<size_t>(i / kColumns)] += of(x[static_cast<size_t>(i)]);
  return sums;
}
double Same(double x) { return x; }

/// Large numbers, each followed by nearly its negative.
TestTensor Cancelling() {
  std::vector<double> values = Normal(kRows * kColumns, 1, 0, 1000);
  const std::vector<double> small = Normal(kRows * kColumns, 2);
  for (size_t i = 1; i < values.size(); i += 2) values[i] = small[i] - values[i - 1];
  return Floats(values);
}

TEST_F(ShadowTest, SumsOfCancellingRowsAreThoseInDouble) {
  const TestTensor x = Cancelling();
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  float sum = 0;
  const float* row = x + blockIdx.x * n;
  if (threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) sum += row[i];
    y[blockIdx.x] = sum;
  }
})",
                           {x, Zeros(DType::kFloat32, kRows)}, {{.grid = kRows}}, kColumns);
  ExpectSameBits(results);
  const std::vector<double> truth = SumsOfRows(x, Same);
  ExpectNear(results[1].twins, truth, 1e-12);
  EXPECT_GT(WorstError(results[1].original, truth), 1e-7);  // the original's own error is real
  EXPECT_TRUE(shadow_.lossy.empty());
}

TEST_F(ShadowTest, TreesThroughSharedMemoryAndShufflesKeepTwins) {
  const TestTensor x = Cancelling();
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float part[128];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int d = 64; d >= 32; d >>= 1) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    float v = part[threadIdx.x];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
  }
})",
                           {x, Zeros(DType::kFloat32, kRows)}, {{.grid = kRows, .block = 128}},
                           kColumns);
  ExpectSameBits(results);
  ExpectNear(results[1].twins, SumsOfRows(x, Same), 1e-12);
}

TEST_F(ShadowTest, DynamicSharedMemoryAndVectorsKeepTwins) {
  const TestTensor x = Floats(Normal(512, 3));
  const auto results = Run(R"(
extern "C" __global__ void k(const float4* x, float4* y, int n) {
  extern __shared__ float4 s[];
  float4 v = x[threadIdx.x];
  v.x = v.x / 3.f + 1.f; v.y = v.y / 3.f; v.z *= v.z; v.w -= 1e-3f;
  s[threadIdx.x] = v;
  __syncthreads();
  v = s[blockDim.x - 1 - threadIdx.x];
  v.x -= 1.f;
  y[threadIdx.x] = v;
})",
                           {x, Zeros(DType::kFloat32, 512)},
                           {{.block = 128, .dynamic_shared = 2048}});
  ExpectSameBits(results);
  std::vector<double> truth(512);
  for (size_t i = 0; i < 128; ++i) {
    const size_t from = 4 * (127 - i);
    truth[4 * i] = x[from] / 3;
    truth[4 * i + 1] = x[from + 1] / 3;
    truth[4 * i + 2] = x[from + 2] * x[from + 2];
    truth[4 * i + 3] = x[from + 3] - double{1e-3f};
  }
  ExpectNear(results[1].twins, truth, 1e-12, 1e-15);
}

TEST_F(ShadowTest, ASecondKernelContinuesWithTheTwinsInAWorkspace) {
  const TestTensor x = Cancelling();
  const auto results = Run(R"(
extern "C" __global__ void parts(const float* x, float* w, float* y, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) sum += x[blockIdx.x * n + i];
  w[blockIdx.x * 32 + threadIdx.x] = sum;
}
extern "C" __global__ void total(const float* x, float* w, float* y, int n) {
  float sum = 0;
  if (threadIdx.x) return;
  for (int i = 0; i < 32; ++i) sum += w[blockIdx.x * 32 + i];
  y[blockIdx.x] = sum;
})",
                           {x, Zeros(DType::kFloat32, kRows * 32), Zeros(DType::kFloat32, kRows)},
                           {{.entry = "parts", .grid = kRows}, {.entry = "total", .grid = kRows}},
                           kColumns);
  ExpectSameBits(results);
  ExpectNear(results[2].twins, SumsOfRows(x, Same), 1e-12);
}

TEST_F(ShadowTest, LocalArraysKeepTwins) {
  const TestTensor x = Floats(Normal(32 * 8, 4));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  float part[8];
  for (int i = 0; i < n; ++i) part[(i * 5 + threadIdx.x) % 8] = x[threadIdx.x * 8 + i] / 7.f;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += part[i];
  y[threadIdx.x] = sum;
})",
                           {x, Zeros(DType::kFloat32, 32)}, {{}}, 8);
  ExpectSameBits(results);
  std::vector<double> truth(32, 0.0);
  for (size_t i = 0; i < 256; ++i) truth[i / 8] += x[i] / 7;
  ExpectNear(results[1].twins, truth, 1e-12);
}

TEST_F(ShadowTest, VariablesOfTheModuleKeepTwins) {
  const TestTensor x = Cancelling();
  const auto results = Run(R"(
__device__ float partial[4 * 32];
extern "C" __global__ void parts(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) sum += x[blockIdx.x * n + i];
  partial[blockIdx.x * 32 + threadIdx.x] = sum;
}
extern "C" __global__ void total(const float* x, float* y, int n) {
  float sum = 0;
  if (threadIdx.x) return;
  for (int i = 0; i < 32; ++i) sum += partial[blockIdx.x * 32 + i];
  y[blockIdx.x] = sum;
})",
                           {x, Zeros(DType::kFloat32, kRows)},
                           {{.entry = "parts", .grid = kRows}, {.entry = "total", .grid = kRows}},
                           kColumns);
  ExpectSameBits(results);
  ExpectNear(results[1].twins, SumsOfRows(x, Same), 1e-12);
}

TEST_F(ShadowTest, CallsAreNamedAsPlacesWithoutTwins) {
  const TestTensor x = Floats(Normal(32, 8));
  const auto results = Run(R"(
__device__ __noinline__ float third(float v) { return v / 3.f; }
extern "C" __global__ void k(const float* x, float* y, int n) {
  y[threadIdx.x] = third(x[threadIdx.x] + 1.f);
})",
                           {x, Zeros(DType::kFloat32, 32)}, {{}});
  ExpectSameBits(results);
  ASSERT_FALSE(shadow_.lossy.empty());
  EXPECT_EQ(shadow_.lossy.front().what.substr(0, 8), "ld.param");
  std::vector<double> truth;
  for (size_t i = 0; i < 32; ++i) truth.push_back((x[i] + 1) / 3);
  ExpectNear(results[1].twins, truth, 1e-6);
}

TEST_F(ShadowTest, VariancesAreThoseInDouble) {
  const TestTensor x = Floats(Normal(kRows * kColumns, 5, 100));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  float mean = 0, square = 0;
  for (int i = threadIdx.x; i < n; i += 32) mean += x[blockIdx.x * n + i];
  for (int d = 16; d; d >>= 1) mean += __shfl_down_sync(~0u, mean, d);
  mean = __shfl_sync(~0u, mean, 0) / n;
  for (int i = threadIdx.x; i < n; i += 32) {
    const float d = x[blockIdx.x * n + i] - mean;
    square += d * d;
  }
  for (int d = 16; d; d >>= 1) square += __shfl_xor_sync(~0u, square, d);
  if (threadIdx.x == 0) y[blockIdx.x] = rsqrtf(square / n + 1e-5f);
})",
                           {x, Zeros(DType::kFloat32, kRows)}, {{.grid = kRows}}, kColumns);
  ExpectSameBits(results);
  std::vector<double> truth;
  for (size_t row = 0; row < kRows; ++row) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < kColumns; ++i) mean += x[row * kColumns + i];
    mean /= kColumns;
    for (size_t i = 0; i < kColumns; ++i) square += std::pow(x[row * kColumns + i] - mean, 2);
    truth.push_back(1 / std::sqrt(square / kColumns + double{1e-5f}));
  }
  ExpectNear(results[1].twins, truth, 1e-12);
}

TEST_F(ShadowTest, CompensatedSumsAreExact) {
  const TestTensor x = Floats(Normal(1000, 6, 1, 100));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  if (threadIdx.x) return;
  float sum = 0, rest = 0;
  for (int i = 0; i < n; ++i) {
    const float term = x[i] - rest, next = sum + term;
    rest = (next - sum) - term;
    sum = next;
  }
  y[0] = sum;
})",
                           {x, Zeros(DType::kFloat32, 1)}, {{}}, 1000);
  ExpectSameBits(results);
  double truth = 0;
  for (size_t i = 0; i < 1000; ++i) truth += x[i];
  ExpectNear(results[1].twins, {truth}, 1e-12);
}

TEST_F(ShadowTest, DecisionsAreTheOriginals) {
  const TestTensor x = Floats(Normal(64, 7, 0, 3));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int* q, int n) {
  const float v = x[threadIdx.x] * 10.f;
  q[threadIdx.x] = (int)v;
  float r = v > 5.f ? v / 3.f : -v;
  if (v < -8.f) r = r * r;
  y[threadIdx.x] = r + floorf(v);
})",
                           {x, Zeros(DType::kFloat32, 64), Zeros(DType::kInt32, 64)},
                           {{.block = 64}});
  ExpectSameBits(results);
  std::vector<double> truth;
  for (size_t i = 0; i < 64; ++i) {
    const double v = x[i] * 10;
    const float single = static_cast<float>(x[i]) * 10.f;
    double r = single > 5 ? v / 3 : -v;
    if (single < -8) r *= r;
    truth.push_back(r + std::floor(single));
  }
  ExpectNear(results[1].twins, truth, 1e-12, 1e-13);
}

TEST_F(ShadowTest, TheFastInverseSquareRootKeepsItsMeaning) {
  const TestTensor x = Floats({0.25, 1, 2, 3, 10, 1000});
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  if (threadIdx.x >= n) return;
  const float v = x[threadIdx.x] * 1.1f;
  float r = __int_as_float(0x5f3759df - (__float_as_int(v) >> 1));
  for (int i = 0; i < 4; ++i) r = r * (1.5f - 0.5f * v * r * r);
  y[threadIdx.x] = r;
})",
                           {x, Zeros(DType::kFloat32, 6)}, {{}}, 6);
  ExpectSameBits(results);
  std::vector<double> truth;
  for (size_t i = 0; i < 6; ++i) truth.push_back(1 / std::sqrt(x[i] * double{1.1f}));
  ExpectNear(results[1].twins, truth, 1e-12);  // Newton's steps converge in double
}

TEST_F(ShadowTest, IntegerKernelsAreLeftAsTheyAre) {
  const CompiledModule module = Compile(R"(
extern "C" __global__ void k(const int* x, int* y, int n) {
  y[threadIdx.x] = __popc(x[threadIdx.x]) * n;
})",
                                        {{}});
  const auto shadow = MakeShadow(module.ptx);
  ASSERT_TRUE(shadow.has_value());
  EXPECT_FALSE(shadow->carries_floats);
  EXPECT_EQ(shadow->ptx, module.ptx);
}

}  // namespace
}  // namespace atunner::shadow
