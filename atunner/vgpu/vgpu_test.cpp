// Kernels compiled from CUDA C++ and run on the virtual GPU, against the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "atunner/base/random.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/engine.h"

namespace atunner::vgpu {
namespace {

using testing::HasSubstr;

class VgpuTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeNvrtcCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
  }

  void Load(const std::string& text, const std::string& arch = "sm_80") {
    CompileRequest request;
    request.source.name = "mine.cu";
    request.source.text = text;
    request.entries = {"k"};
    request.arch = arch;
    const CompileOutcome outcome = compiler_->Compile(request).value();
    ASSERT_TRUE(outcome.ok()) << outcome.error;
    ptx_ = outcome.module->ptx;
    auto module = ptx::Parse(ptx_);
    ASSERT_TRUE(module.has_value()) << module.error().ToString();
    auto program = LoadProgram(*std::move(module), memory_);
    ASSERT_TRUE(program.has_value()) << program.error().ToString();
    program_ = *std::move(program);
  }

  template <class T>
  uint64_t Put(const std::vector<T>& values) {
    const uint64_t address = memory_.Allocate(values.size() * sizeof(T)).value();
    std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> Get(uint64_t address, size_t n) {
    std::vector<T> values(n);
    std::memcpy(values.data(), reinterpret_cast<void*>(address), n * sizeof(T));
    return values;
  }

  template <class... A>
  ExecResult Run(Dim3 grid, Dim3 block, uint32_t shared, A... args) {
    if (!program_) return {};  // the failure was reported by Load
    const ptx::Function* entry = program_->FindEntry("k");
    std::vector<std::byte> params(entry->param_bytes);
    size_t i = 0;
    const auto put = [&](auto value) {
      EXPECT_EQ(entry->params[i].bytes, sizeof value);
      std::memcpy(params.data() + entry->params[i++].offset, &value, sizeof value);
    };
    (put(args), ...);
    ExecOptions options;
    options.count = count_;
    options.deadline_seconds = 20;
    options.max_warp_instructions_per_block = 50'000'000;
    return program_->Run("k", {grid, block, {}, shared}, params, options);
  }

  std::unique_ptr<Compiler> compiler_;
  Memory memory_{uint64_t{1} << 36};
  std::unique_ptr<Program> program_;
  std::string ptx_;
  bool count_ = false;
};

std::vector<float> Randoms(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random.Normal());
  return values;
}

TEST_F(VgpuTest, SoftmaxWithSharedMemoryAndShuffles) {
  Load(R"(
#include <math.h>
extern "C" __global__ void k(const float* x, float* y, int cols) {
  __shared__ float part[32];
  const float* row = x + (long long)blockIdx.x * cols;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, row[i]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
  __syncthreads();
  m = part[0];
  for (int w = 1; w < blockDim.x / 32; ++w) m = fmaxf(m, part[w]);
  __syncthreads();
  float s = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) s += expf(row[i] - m);
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) s += part[w];
  for (int i = threadIdx.x; i < cols; i += blockDim.x) y[(long long)blockIdx.x * cols + i] = expf(row[i] - m) / s;
})");
  const int rows = 7;
  const int cols = 1003;
  const auto x = Randoms(rows * cols, 1);
  const uint64_t px = Put(x);
  const uint64_t py = Put(std::vector<float>(x.size(), NAN));
  const ExecResult result = Run({rows, 1, 1}, {128, 1, 1}, 0, px, py, cols);
  ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
  const auto y = Get<float>(py, x.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < cols; ++c)
      sum += std::exp(static_cast<double>(x[static_cast<size_t>(r * cols + c)]));
    for (int c = 0; c < cols; ++c) {
      const auto i = static_cast<size_t>(r * cols + c);
      ASSERT_NEAR(y[i] * sum / std::exp(static_cast<double>(x[i])), 1.0, 1e-5);
    }
  }
}

TEST_F(VgpuTest, IntegersOfAllKinds) {
  Load(R"(
extern "C" __global__ void k(const int* a, const int* b, long long* out) {
  int x = a[threadIdx.x], y = b[threadIdx.x];
  long long* o = out + threadIdx.x * 16;
  o[0] = x / y; o[1] = x % y; o[2] = (unsigned)x / (unsigned)y; o[3] = (long long)x * y;
  o[4] = __mulhi(x, y); o[5] = __popc(x); o[6] = __clz(x); o[7] = __brev(x);
  o[8] = __byte_perm(x, y, 0x6521); o[9] = __funnelshift_l(x, y, 7); o[10] = x >> (y & 31); o[11] = (unsigned)x >> (y & 31);
  o[12] = ((long long)x * 1234567) / y; o[13] = abs(x) + min(x, y) + max(x, y); o[14] = __ffs(x); o[15] = x ^ (y & ~x);
})");
  std::vector<int> a;
  std::vector<int> b;
  Random random(2);
  for (int i = 0; i < 64; ++i) {
    a.push_back(static_cast<int>(random.Next()));
    b.push_back(static_cast<int>(random.Next()) | 1);
  }
  const uint64_t out = Put(std::vector<int64_t>(64 * 16));
  const ExecResult result = Run({1, 1, 1}, {64, 1, 1}, 0, Put(a), Put(b), out);
  ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
  const auto o = Get<int64_t>(out, 64 * 16);
  for (size_t i = 0; i < 64; ++i) {
    const int x = a[i];
    const int y = b[i];
    const auto ux = static_cast<uint32_t>(x);
    const auto uy = static_cast<uint32_t>(y);
    const int64_t* r = &o[i * 16];
    EXPECT_EQ(r[0], x / y);
    EXPECT_EQ(r[1], x % y);
    EXPECT_EQ(r[2], ux / uy);
    EXPECT_EQ(r[3], static_cast<int64_t>(x) * y);
    EXPECT_EQ(r[4], static_cast<int>((static_cast<int64_t>(x) * y) >> 32));
    EXPECT_EQ(r[5], std::popcount(ux));
    EXPECT_EQ(r[6], std::countl_zero(ux));
    EXPECT_EQ(r[9],
              static_cast<int64_t>(static_cast<int32_t>((uy << 7) | (ux >> 25))) & 0xffffffff);
    EXPECT_EQ(r[10], x >> (y & 31));
    EXPECT_EQ(r[11], ux >> (uy & 31));
    EXPECT_EQ(r[12], static_cast<int64_t>(x) * 1234567 / y);
    EXPECT_EQ(r[14], x ? std::countr_zero(ux) + 1 : 0);
    EXPECT_EQ(r[15], x ^ (y & ~x));
  }
}

TEST_F(VgpuTest, HalvesAndConversions) {
  Load(R"(
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void k(const float* a, float* out) {
  float x = a[threadIdx.x];
  float* o = out + threadIdx.x * 8;
  o[0] = __half2float(__float2half_rn(x));
  o[1] = __bfloat162float(__float2bfloat16_rn(x));
  __half2 h = __floats2half2_rn(x, 2 * x);
  h = __hfma2(h, h, h);
  o[2] = __low2float(h); o[3] = __high2float(h);
  o[4] = __float2int_rz(x * 100); o[5] = rintf(x * 3); o[6] = (float)(double)(x * 1.1); o[7] = __half2float(__hadd(__float2half(x), __float2half(1.0f)));
})");
  const auto a = Randoms(32, 3);
  const uint64_t out = Put(std::vector<float>(32 * 8));
  const ExecResult result = Run({1, 1, 1}, {32, 1, 1}, 0, Put(a), out);
  ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
  const auto o = Get<float>(out, 32 * 8);
  for (size_t i = 0; i < 32; ++i) {
    const float h = HalfToFloat(FloatToHalf(a[i]));
    EXPECT_EQ(o[i * 8], h);
    EXPECT_EQ(o[i * 8 + 1], BFloat16ToFloat(FloatToBFloat16(a[i])));
    EXPECT_EQ(o[i * 8 + 2], HalfToFloat(FloatToHalf(h * h + h)));
    EXPECT_EQ(o[i * 8 + 4], std::trunc(a[i] * 100));
    EXPECT_EQ(o[i * 8 + 5], std::nearbyint(a[i] * 3));
    EXPECT_EQ(o[i * 8 + 7], HalfToFloat(FloatToHalf(h + 1.0f)));
  }
}

TEST_F(VgpuTest, AtomicsHistogramAndSpinLock) {
  Load(R"(
__device__ int lock = 0;
__device__ int guarded = 0;
extern "C" __global__ void k(const int* x, int* bins, int n, int* result) {
  __shared__ int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      *(volatile int*)&guarded = *(volatile int*)&guarded + 1;
      __threadfence();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(result, *(volatile int*)&guarded);
})");
  std::vector<int> x(5000);
  Random random(4);
  std::vector<int> want(16);
  for (int& v : x) {
    v = static_cast<int>(random.Below(1000));
    ++want[static_cast<size_t>(v & 15)];
  }
  const uint64_t bins = Put(std::vector<int>(16));
  const uint64_t result_at = Put(std::vector<int>(1));
  const ExecResult result = Run({4, 1, 1}, {96, 1, 1}, 0, Put(x), bins, 5000, result_at);
  ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
  EXPECT_EQ(Get<int>(bins, 16), want);
  EXPECT_EQ(Get<int>(result_at, 1)[0], 4 * 96);
}

TEST_F(VgpuTest, TensorCoresWithLdmatrixAndAsyncCopies) {
  Load(R"(
#include <cuda_bf16.h>
// One warp: C[16,8] = A[16,16] · B[8,16]ᵀ, all through shared memory.
extern "C" __global__ void k(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  __shared__ __align__(16) __nv_bfloat16 sa[16 * 16];
  __shared__ __align__(16) __nv_bfloat16 sb[8 * 16];
  unsigned pa = (unsigned)__cvta_generic_to_shared(sa), pb = (unsigned)__cvta_generic_to_shared(sb);
  int l = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(pa + l * 16), "l"(a + l * 8));
  if (l < 16) asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(pb + l * 16), "l"(b + l * 8));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  unsigned ra[4], rb[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa + (l % 16) * 32 + (l / 16) * 16));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb + (l % 8) * 32 + (l / 8 % 2) * 16));
  float d[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  int g = l / 4, t = l % 4;
  c[g * 8 + t * 2] = d[0]; c[g * 8 + t * 2 + 1] = d[1]; c[(g + 8) * 8 + t * 2] = d[2]; c[(g + 8) * 8 + t * 2 + 1] = d[3];
})");
  std::vector<uint16_t> a(256);
  std::vector<uint16_t> b(128);
  Random random(5);
  for (auto& v : a) v = FloatToBFloat16(static_cast<float>(random.Normal()));
  for (auto& v : b) v = FloatToBFloat16(static_cast<float>(random.Normal()));
  const uint64_t c = Put(std::vector<float>(128));
  const ExecResult result = Run({1, 1, 1}, {32, 1, 1}, 0, Put(a), Put(b), c);
  ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
  const auto got = Get<float>(c, 128);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      double want = 0;
      for (size_t k = 0; k < 16; ++k)
        want += static_cast<double>(BFloat16ToFloat(a[i * 16 + k])) *
                BFloat16ToFloat(b[j * 16 + k]);
      ASSERT_NEAR(got[i * 8 + j], want, 1e-4);
    }
  }
}

TEST_F(VgpuTest, CountsCoalescingConflictsAndDivergence) {
  count_ = true;
  Load(R"(
extern "C" __global__ void k(const float* x, float* y) {
  __shared__ float s[32 * 32];
  s[threadIdx.x * 32] = x[threadIdx.x];       // 32-way conflict
  __syncthreads();
  if (threadIdx.x & 1) y[threadIdx.x * 8] = s[threadIdx.x * 32]; else y[threadIdx.x * 8] = 1;
})");
  const uint64_t x = Put(std::vector<float>(32));
  const uint64_t y = Put(std::vector<float>(256));
  const ExecResult result = Run({1, 1, 1}, {32, 1, 1}, 0, x, y);
  ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
  EXPECT_EQ(result.counts.global.load_sectors, 4u);
  EXPECT_EQ(result.counts.global.store_sectors, 32u);
  EXPECT_GE(result.counts.shared.wavefronts, 32u);
  EXPECT_EQ(result.counts.global.unique_load_sectors, 4u);
}

TEST_F(VgpuTest, ConversionsReadAndWriteNarrowTypesInWideRegisters) {
  Load(R"(
extern "C" __global__ void k(const long long* x, long long* y) {
  long long v = x[threadIdx.x], low, byte, half;
  unsigned word;
  asm("cvt.s64.s32 %0, %1;" : "=l"(low) : "l"(v));
  asm("cvt.u32.u8 %0, %1;" : "=r"(word) : "l"(v));
  asm("cvt.s64.s8 %0, %1;" : "=l"(byte) : "l"(v));
  asm("cvt.s16.s64 %0, %1;" : "=l"(half) : "l"(v));
  y[threadIdx.x * 4] = low;
  y[threadIdx.x * 4 + 1] = word;
  y[threadIdx.x * 4 + 2] = byte;
  y[threadIdx.x * 4 + 3] = half;
})");
  std::vector<int64_t> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int64_t>(Mix64(i));
  const uint64_t py = Put(std::vector<int64_t>(128));
  const ExecResult result = Run({1, 1, 1}, {32, 1, 1}, 0, Put(x), py);
  ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
  const auto y = Get<int64_t>(py, 128);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i * 4], static_cast<int32_t>(x[i]));
    EXPECT_EQ(y[i * 4 + 1], static_cast<uint8_t>(x[i]));
    EXPECT_EQ(y[i * 4 + 2], static_cast<int8_t>(x[i]));
    EXPECT_EQ(y[i * 4 + 3], static_cast<int16_t>(x[i]));
  }
}

TEST_F(VgpuTest, InfiniteLoopEnds) {
  Load("extern \"C\" __global__ void k(volatile int* x) { while (*x == 0) {} }");
  const ExecResult result = Run({1, 1, 1}, {32, 1, 1}, 0, Put(std::vector<int>(1)));
  EXPECT_EQ(result.outcome.kind, LaunchOutcome::Kind::kTimeout);
}

TEST_F(VgpuTest, MissingOpcodeIsNamed) {
  const auto module = ptx::Parse(
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n "
      "tcgen05.wait::ld.sync.aligned;\n "
      "ret;\n}");
  ASSERT_TRUE(module.has_value());
  const auto program = LoadProgram(*module, memory_);
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(program.error().ToString(), HasSubstr("tcgen05.wait"));
  EXPECT_THAT(program.error().ToString(), HasSubstr("line 5"));
}

// Lanes that leave a long loop early must wait for the others before a shuffle, however long those
// take.
TEST_F(VgpuTest, ShufflesWaitForLanesThatLoopLonger) {
  Load(R"(extern "C" __global__ void k(int* out, int n) {
    int sum = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 32) {
      if (i % 7 == 3) sum += i; else sum += 1;
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    out[threadIdx.x] = sum + (__ballot_sync(0xffffffffu, threadIdx.x < 3) == 7);
  })");
  constexpr int kElements = 40 * 32 * 100 + 17;
  int expected = 1;
  for (int i = 0; i < kElements; ++i) expected += i % 7 == 3 ? i : 1;
  const uint64_t out = Put(std::vector<int>(32));
  const ExecResult result = Run({1, 1, 1}, {32, 1, 1}, 0, out, kElements);
  ASSERT_TRUE(result.outcome.completed())
      << (result.outcome.hazards.empty() ? result.outcome.message
                                         : result.outcome.hazards[0].detail);
  EXPECT_THAT(Get<int>(out, 32), testing::Each(expected));
}

// A shuffle among the lanes of one branch does not wait for those of the other, which may spin
// until it is done.
TEST_F(VgpuTest, ShufflesOfAPartDoNotWaitForTheRest) {
  Load(R"(extern "C" __global__ void k(int* out, volatile int* flag) {
    const int lane = threadIdx.x;
    if (lane < 16) {
      int v = __shfl_xor_sync(0xffffu, lane, 1);
      if (lane == 0) *flag = 1;
      out[lane] = v;
    } else {
      while (*flag == 0) {}
      out[lane] = -1;
    }
  })");
  const uint64_t out = Put(std::vector<int>(32));
  const uint64_t flag = Put(std::vector<int>(1));
  const ExecResult result = Run({1, 1, 1}, {32, 1, 1}, 0, out, flag);
  ASSERT_TRUE(result.outcome.completed()) << result.outcome.message;
  EXPECT_EQ(Get<int>(out, 32)[3], 2);
  EXPECT_EQ(Get<int>(out, 32)[20], -1);
}

// Lanes that wait for a lane that never arrives go on without it, and the mistake is reported.
TEST_F(VgpuTest, ShufflesThatNameAnAbsentLaneAreReported) {
  Load(R"(extern "C" __global__ void k(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffffu, v, 16);
    out[threadIdx.x] = v;
  })");
  const uint64_t out = Put(std::vector<int>(32));
  const ExecResult result = Run({1, 1, 1}, {32, 1, 1}, 0, out);
  ASSERT_FALSE(result.outcome.hazards.empty());
  EXPECT_EQ(result.outcome.hazards[0].kind, Hazard::Kind::kInvalidShuffle);
}

/// Words of shared memory behind one address register, and multiply-adds one behind the other, take
/// roads of their own.
TEST_F(VgpuTest, WordsBehindOneAddressAndSumsOfProducts) {
  const char* text = R"(
extern "C" __global__ void k(const float* x, float* y, int far) {
  __shared__ float s[128];
  s[threadIdx.x] = x[threadIdx.x];
  s[threadIdx.x + 64] = x[threadIdx.x + 64];
  __syncthreads();
  const int at[4] = {0, (int)threadIdx.x, (int)threadIdx.x / 16 * 4, (int)threadIdx.x % 16 * 3};
  for (int a = 0; a < 4; ++a) {
    unsigned from = (unsigned)__cvta_generic_to_shared(s + at[a]);
    if (far) from += 192;
    float u, v, w;
    asm volatile("ld.shared.f32 %0, [%3];\nld.shared.f32 %1, [%3+4];\nld.shared.f32 %2, [%3+SKIP];"
                 : "=f"(u), "=f"(v), "=f"(w) : "r"(from));
    float sum = fmaf(u, 2, 1);
    sum = fmaf(v, sum, w);
    if (threadIdx.x % 3 == 0) sum = fmaf(sum, u, v);
    y[a * 64 + threadIdx.x] = fmaf(sum, v, fmaf(w, w, u));
  }
})";
  const auto with = [&](const char* skip) {
    return std::string(text).replace(std::string(text).find("SKIP"), 4, skip);
  };
  const std::vector<float> x = Randoms(128, 3);
  const uint64_t from = Put(x);
  const uint64_t to = Put(std::vector<float>(256));
  Load(with("128"));
  ASSERT_TRUE(Run({1, 1, 1}, {64, 1, 1}, 0, from, to, 0).outcome.completed());
  const std::vector<float> y = Get<float>(to, 256);
  for (size_t i = 0; i < 256; ++i) {
    const size_t t = i % 64;
    const size_t at[] = {0, t, t / 16 * 4, t % 16 * 3};
    const float u = x[at[i / 64]], v = x[at[i / 64] + 1], w = x[at[i / 64] + 32];
    float sum = std::fma(v, std::fma(u, 2.0f, 1.0f), w);
    if (t % 3 == 0) sum = std::fma(sum, u, v);
    EXPECT_EQ(y[i], std::fma(sum, v, std::fma(w, w, u))) << i;
  }
  EXPECT_THAT(Run({1, 1, 1}, {64, 1, 1}, 0, from, to, 1).outcome.message, HasSubstr("shared"));
  Load(with("130"));
  EXPECT_THAT(Run({1, 1, 1}, {64, 1, 1}, 0, from, to, 0).outcome.message,
              HasSubstr("multiple of 4"));
  Load(with("508"));
  EXPECT_THAT(Run({1, 1, 1}, {64, 1, 1}, 0, from, to, 0).outcome.message, HasSubstr("512"));
}

}  // namespace
}  // namespace atunner::vgpu
