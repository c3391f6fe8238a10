// Kernels in 16-bit floats, and the instructions that feed tensor cores.
#include "atunner/shadow/shadow_run_test.h"

namespace atunner::shadow {
namespace {

constexpr size_t kCount = 256;

TEST_F(ShadowTest, BFloat16InAndOut) {
  const TestTensor x = Tensor(DType::kBFloat16, Normal(kCount, 1));
  const auto results = Run(R"(
#include <cuda_bf16.h>
extern "C" __global__ void k(const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
  const int i = threadIdx.x;
  const float v = __bfloat162float(x[i]);
  y[i] = __float2bfloat16(v / 3.f);
  __syncthreads();
  const float w = __bfloat162float(y[(i + 1) % n]);
  y[n + i] = __float2bfloat16(w * w);
})",
                           {x, Zeros(DType::kBFloat16, 2 * kCount)}, {{.block = kCount}}, kCount);
  ExpectSameBits(results);
  std::vector<double> truth(2 * kCount);
  for (size_t i = 0; i < kCount; ++i) {
    truth[i] = x[i] / 3;
    truth[kCount + i] = std::pow(x[(i + 1) % kCount] / 3, 2);
  }
  ExpectNear(results[1].twins, truth, 1e-14);
}

TEST_F(ShadowTest, PairsOfHalves) {
  const TestTensor x = Tensor(DType::kFloat16, Normal(2 * kCount, 2));
  const auto results = Run(R"(
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half2* x, __half2* y, int n) {
  const int i = threadIdx.x;
  const __half2 third = __float2half2_rn(0.3333f);
  __half2 v = __hmul2(x[i], third);
  v = __hfma2(v, v, x[i]);
  v = __halves2half2(__high2half(v), __hadd(__low2half(v), __float2half(1.f)));
  y[i] = __shfl_xor_sync(~0u, v, 1);
})",
                           {x, Zeros(DType::kFloat16, 2 * kCount)}, {{.block = kCount}});
  ExpectSameBits(results);
  const double third = 0.3333f;  // the twin of the constant is not rounded to float16
  std::vector<double> truth(2 * kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const auto of = [&](size_t at) { return std::pow(x[at] * third, 2) + x[at]; };
    truth[2 * i] = of(2 * (i ^ 1) + 1);
    truth[2 * i + 1] = of(2 * (i ^ 1)) + 1;
  }
  ExpectNear(results[1].twins, truth, 1e-14, 1e-15);
}

TEST_F(ShadowTest, BFloat16PairsInWideVectorsThroughSharedMemory) {
  const TestTensor x = Tensor(DType::kBFloat16, Normal(8 * 64, 3));
  const auto results = Run(R"(
#include <cuda_bf16.h>
extern "C" __global__ void k(const uint4* x, uint4* y, int n) {
  __shared__ uint4 s[64];
  uint4 v = x[threadIdx.x];
  __nv_bfloat162* p = (__nv_bfloat162*)&v;
  for (int i = 0; i < 4; ++i) {
    float2 f = __bfloat1622float2(p[i]);
    f.x /= 3.f; f.y /= 7.f;
    p[i] = __float22bfloat162_rn(f);
  }
  s[threadIdx.x] = v;
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
})",
                           {x, Zeros(DType::kBFloat16, 8 * 64)}, {{.block = 64}});
  ExpectSameBits(results);
  std::vector<double> truth(8 * 64);
  for (size_t i = 0; i < truth.size(); ++i) {
    const size_t from = (63 - i / 8) * 8 + i % 8;
    truth[i] = x[from] / (i % 2 ? 7 : 3);
  }
  ExpectNear(results[1].twins, truth, 1e-14);
}

TEST_F(ShadowTest, SoftmaxOfHalves) {
  constexpr size_t kWidth = 128;
  const TestTensor x = Tensor(DType::kFloat16, Normal(kWidth, 4, 0, 4));
  const auto results = Run(R"(
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half* x, __half* y, int n) {
  __shared__ float s[128];
  const float v = __half2float(x[threadIdx.x]);
  s[threadIdx.x] = v;
  __syncthreads();
  float most = s[0];
  for (int i = 1; i < n; ++i) most = fmaxf(most, s[i]);
  __syncthreads();
  s[threadIdx.x] = expf(v - most);
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += s[i];
  y[threadIdx.x] = __float2half(s[threadIdx.x] / sum);
})",
                           {x, Zeros(DType::kFloat16, kWidth)}, {{.block = kWidth}}, kWidth);
  ExpectSameBits(results);
  double sum = 0;
  std::vector<double> truth(kWidth);
  for (size_t i = 0; i < kWidth; ++i) sum += std::exp(x[i]);
  for (size_t i = 0; i < kWidth; ++i) truth[i] = std::exp(x[i]) / sum;
  ExpectNear(results[1].twins, truth, 1e-12);
}

TEST_F(ShadowTest, AsynchronousCopiesBringTwins) {
  const TestTensor x = Floats(Normal(256, 5));
  const auto results = Run(R"(
extern "C" __global__ void first(const float* x, float* w, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += 64) w[i] = x[i] / 3.f;
}
extern "C" __global__ void second(const float* x, float* w, float* y, int n) {
  __shared__ float4 s[64];
  const unsigned to = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(w + 4 * threadIdx.x));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  const float4 v = s[63 - threadIdx.x];
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
})",
                           {x, Zeros(DType::kFloat32, 256), Zeros(DType::kFloat32, 64)},
                           {{.entry = "first", .block = 64}, {.entry = "second", .block = 64}},
                           256);
  ExpectSameBits(results);
  std::vector<double> truth(64, 0.0);
  for (size_t i = 0; i < 256; ++i) truth[63 - i / 4] += x[i] / 3;
  ExpectNear(results[2].twins, truth, 1e-12, 1e-15);
}

/// A 16 x 8 product of halves, with B in rows, loaded by ldmatrix.
TEST_F(ShadowTest, ProductsOnTensorCores) {
  const TestTensor a = Floats(Normal(16 * 16, 6)), b = Floats(Normal(16 * 8, 7));
  const auto results = Run(R"(
#include <cuda_bf16.h>
extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
  __shared__ __align__(16) __nv_bfloat16 sa[16 * 16], sb[16 * 8];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) sa[i] = __float2bfloat16(a[i] / 3.f);
  for (int i = lane; i < 128; i += 32) sb[i] = __float2bfloat16(b[i] / 7.f);
  __syncthreads();
  unsigned fa[4], fb[2];
  const unsigned at_a = (unsigned)__cvta_generic_to_shared(sa + (lane % 16) * 16 + lane / 16 * 8);
  const unsigned at_b = (unsigned)__cvta_generic_to_shared(sb + (lane % 16) * 8);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(at_a));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
      : "=r"(fb[0]), "=r"(fb[1]) : "r"(at_b));
  float d[4] = {};
  for (int twice = 0; twice < 2; ++twice)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
})",
                           {a, b, Zeros(DType::kFloat32, 128)}, {{}});
  ExpectSameBits(results);
  std::vector<double> truth(128, 0.0);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      for (size_t k = 0; k < 16; ++k)
        truth[i * 8 + j] += 2 * (a[i * 16 + k] / 3) * (b[k * 8 + j] / 7);
    }
  }
  ExpectNear(results[2].twins, truth, 1e-12, 1e-14);
}

TEST_F(ShadowTest, ProductsInTf32) {
  const TestTensor a = Floats(Normal(16 * 8, 8)), b = Floats(Normal(8 * 8, 9));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  const auto rounded = [](float v) {
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
  };
  unsigned fa[4] = {rounded(a[g * 8 + t] / 3.f), rounded(a[(g + 8) * 8 + t] / 3.f),
                    rounded(a[g * 8 + t + 4] / 3.f), rounded(a[(g + 8) * 8 + t + 4] / 3.f)};
  unsigned fb[2] = {rounded(b[t * 8 + g]), rounded(b[(t + 4) * 8 + g])};
  float d[4] = {1.f, 1.f, 1.f, 1.f};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
               "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
    : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
})",
                           {a, b, Zeros(DType::kFloat32, 128)}, {{}});
  ExpectSameBits(results);
  std::vector<double> truth(128, 1.0);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      for (size_t k = 0; k < 8; ++k) truth[i * 8 + j] += a[i * 8 + k] / 3 * b[k * 8 + j];
    }
  }
  ExpectNear(results[2].twins, truth, 1e-12, 1e-14);
}

/// Fragments through shared memory, with an addend and a factor on every element.
TEST_F(ShadowTest, ProductsOfFragments) {
  const TestTensor a = Floats(Normal(16 * 32, 11)), b = Floats(Normal(32 * 16, 12));
  const auto results = Run(R"(
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const float* a, const float* b, float* c, float* d, int n) {
  __shared__ __align__(32) __half sa[16 * 32], sb[32 * 16];
  for (int i = threadIdx.x; i < 512; i += 32) {
    sa[i] = __float2half(a[i] / 3.f);
    sb[i] = __float2half(b[i] / 7.f);
  }
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, addend;
  wmma::fill_fragment(sum, 0.f);
  for (int k = 0; k < 32; k += 16) {
    wmma::load_matrix_sync(fa, sa + k, 32);
    wmma::load_matrix_sync(fb, sb + k, 32);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  wmma::load_matrix_sync(addend, a, 16, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] / 5.f + addend.x[i];
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) d[i] = c[i] * 3.f;
})",
                           {a, b, Zeros(DType::kFloat32, 256), Zeros(DType::kFloat32, 256)}, {{}});
  ExpectSameBits(results);
  std::vector<double> truth, thrice;
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 16; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 32; ++k) sum += a[i * 32 + k] / 3 * (b[j * 32 + k] / 7);
      truth.push_back(sum / 5 + a[i * 16 + j]);
      thrice.push_back(3 * truth.back());
    }
  }
  ExpectNear(results[2].twins, truth, 1e-12, 1e-14);
  ExpectNear(results[3].twins, thrice, 1e-12, 1e-14);
}

TEST_F(ShadowTest, RoundingByHandIsRoundedOnce) {
  const TestTensor x = Floats(Normal(kCount, 10));
  const auto results = Run(R"(
extern "C" __global__ void k(const float* x, unsigned short* y, int n) {
  const unsigned bits = __float_as_uint(x[threadIdx.x] / 3.f);
  y[threadIdx.x] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
})",
                           {x, Zeros(DType::kBFloat16, kCount)}, {{.block = kCount}});
  ExpectSameBits(results);
  std::vector<double> truth;
  for (size_t i = 0; i < kCount; ++i) truth.push_back(x[i] / 3);
  ExpectNear(results[1].twins, truth, 0x1p-8);
}

}  // namespace
}  // namespace atunner::shadow
