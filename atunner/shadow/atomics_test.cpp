// Atomics: the twins of sums are sums of twins, whatever the order.
#include "atunner/shadow/shadow_run_test.h"

namespace atunner::shadow {
namespace {

constexpr int kCount = 2048;

double SumOfThirds(const TestTensor& x) {
  double sum = 0;
  for (size_t i = 0; i < x.count(); ++i) sum += x[i] / 3;
  return sum;
}

/// The atomic additions of two runs may come in different orders.
void ExpectCloseBits(const TestResult& result) {
  EXPECT_NEAR(result.original[0], result.beside[0], 0.05);
}

TEST_F(ShadowTest, SumsByGlobalAtomics) {
  const TestTensor x = Floats(Normal(kCount, 1, 0, 100));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  atomicAdd(y, x[blockIdx.x * blockDim.x + threadIdx.x] / 3.f);
})",
                           {x, Zeros(DType::kFloat32, 1)}, {{.grid = 16, .block = 128}});
  ExpectCloseBits(results[1]);
  ExpectNear(results[1].twins, {SumOfThirds(x)}, 1e-11);
}

TEST_F(ShadowTest, SumsByAtomicsOntoGivenValues) {
  const TestTensor x = Floats(Normal(kCount, 2, 0, 100));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  atomicAdd(y + threadIdx.x % 4, x[blockIdx.x * blockDim.x + threadIdx.x] / 3.f);
})",
                           {x, Floats({1000.25, -7, 0.1, 3})}, {{.grid = 16, .block = 128}});
  std::vector<double> truth = {1000.25, -7, double{0.1f}, 3};
  for (size_t i = 0; i < x.count(); ++i) truth[i % 4] += x[i] / 3;
  ExpectNear(results[1].twins, truth, 1e-11, 1e-11);
}

TEST_F(ShadowTest, SumsBySharedAtomicsAfterClearing) {
  const TestTensor x = Floats(Normal(kCount, 3, 0, 100));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float sum;
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[blockIdx.x * blockDim.x + threadIdx.x] / 3.f);
    __syncthreads();
    if (threadIdx.x == 0) y[2 * blockIdx.x + round] = sum;
    __syncthreads();
  }
})",
                           {x, Zeros(DType::kFloat32, 2)}, {{.block = 1024}});
  double truth = 0;
  for (size_t i = 0; i < 1024; ++i) truth += x[i] / 3;
  ExpectNear(results[1].twins, {truth, truth}, 1e-11);
}

TEST_F(ShadowTest, TheValueBeforeAnAtomicAdditionHasATwin) {
  const TestTensor x = Floats(Normal(32, 4, 0, 100));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* s, float* y, int n) {
  if (threadIdx.x) return;
  for (int i = 0; i < 32; ++i) y[i] = atomicAdd(s, x[i] / 3.f);
})",
                           {x, Zeros(DType::kFloat32, 1), Zeros(DType::kFloat32, 32)}, {{}});
  ExpectSameBits(results);
  std::vector<double> truth(32, 0.0);
  for (size_t i = 1; i < 32; ++i) truth[i] = truth[i - 1] + x[i - 1] / 3;
  ExpectNear(results[2].twins, truth, 1e-11, 1e-11);
}

constexpr const char* kCompareAndSwap = R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  const float v = x[blockIdx.x * blockDim.x + threadIdx.x] / 3.f;
  int* at = (int*)y;
  int old = *at, assumed;
  do {
    assumed = old;
    old = atomicCAS(at, assumed, __float_as_int(v + __int_as_float(assumed)));
  } while (assumed != old);
})";

TEST_F(ShadowTest, SumsByCompareAndSwap) {
  const TestTensor x = Floats(Normal(1024, 5, 0, 100));
  const auto results = Run(kCompareAndSwap, {x, Zeros(DType::kFloat32, 1)}, {{.block = 1024}});
  ExpectCloseBits(results[1]);
  ExpectNear(results[1].twins, {SumOfThirds(x)}, 1e-11);
}

/// Where a thread waits too long for the twin of another block's exchange, one rounding remains.
TEST_F(ShadowTest, SumsByCompareAndSwapOfSeveralBlocks) {
  const TestTensor x = Floats(Normal(kCount, 5, 0, 100));
  const auto results = Run(kCompareAndSwap, {x, Zeros(DType::kFloat32, 1)},
                           {{.grid = 4, .block = 512}});
  ExpectCloseBits(results[1]);
  ExpectNear(results[1].twins, {SumOfThirds(x)}, 0, 1e-4);
}

TEST_F(ShadowTest, SumsInDoubleByAtomics) {
  const TestTensor x = Floats(Normal(kCount, 6, 0, 100));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, double* y, int n) {
  atomicAdd(y, (double)(x[blockIdx.x * blockDim.x + threadIdx.x] / 3.f));
})",
                           {x, Zeros(DType::kFloat64, 1)}, {{.grid = 16, .block = 128}});
  ExpectNear(results[1].twins, {SumOfThirds(x)}, 1e-11);
}

TEST_F(ShadowTest, SumsOfHalvesByAtomics) {
  const TestTensor x = Tensor(DType::kFloat16, Normal(512, 9));
  const auto results = Run(
      R"(
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half2* x, __half2* y, __half* z, int n) {
  const __half2 v = __hmul2(x[threadIdx.x], __float2half2_rn(0.37f));
  atomicAdd(y, v);
  atomicAdd(z + threadIdx.x % 3, __low2half(v));
  __syncthreads();
  if (threadIdx.x == 0) y[1] = __hadd2(y[0], y[0]);
})",
      {x, Tensor(DType::kFloat16, {0, 0, 0, 0}), Tensor(DType::kFloat16, {1, -2, 0.5})},
      {{.block = 256}});
  std::vector<double> pair(2, 0.0), third = {1, -2, 0.5};
  for (size_t i = 0; i < 512; ++i) pair[i % 2] += x[i] * double{0.37f};
  for (size_t i = 0; i < 256; ++i) third[i % 3] += x[2 * i] * double{0.37f};
  ExpectNear(results[1].twins, {pair[0], pair[1], 2 * pair[0], 2 * pair[1]}, 1e-12, 1e-13);
  ExpectNear(results[2].twins, third, 1e-12, 1e-13);
}

TEST_F(ShadowTest, LargestByAtomicsOnBits) {
  const TestTensor x = Floats(Normal(kCount, 7, 500, 100));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, int* best, int n) {
  atomicMax(best, __float_as_int(x[blockIdx.x * blockDim.x + threadIdx.x] / 3.f));
}
extern "C" __global__ void read(const float* x, float* best, int n) {
  if (threadIdx.x == 0) best[1] = best[0] * 2.f;
})",
                           {x, Zeros(DType::kFloat32, 2)},
                           {{.grid = 16, .block = 128}, {.entry = "read"}});
  ExpectSameBits(results);
  double truth = 0;
  for (size_t i = 0; i < x.count(); ++i) truth = std::max(truth, x[i] / 3);
  ExpectNear(results[1].twins, {truth, 2 * truth}, 1e-14);
}

TEST_F(ShadowTest, ExchangesCarryTwins) {
  const TestTensor x = Floats(Normal(32, 8));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, float* s, float* y, int n) {
  if (threadIdx.x) return;
  for (int i = 0; i < 32; ++i) y[i] = atomicExch(s, x[i] / 3.f);
})",
                           {x, Zeros(DType::kFloat32, 1), Zeros(DType::kFloat32, 32)}, {{}});
  ExpectSameBits(results);
  std::vector<double> truth(32, 0.0);
  for (size_t i = 1; i < 32; ++i) truth[i] = x[i - 1] / 3;
  ExpectNear(results[2].twins, truth, 1e-14);
}

}  // namespace
}  // namespace atunner::shadow
