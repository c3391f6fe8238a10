// Kernels whose time tells one rate of the device each. `sink` is never written: it keeps the work
// from being removed.
#include <cuda_bf16.h>

extern "C" __global__ void probe_copy(const uint4* from, uint4* to, long long n) {
  // Each block copies one stretch, four units of a thread under way at once. n is a multiple of 4 *
  // blockDim.x.
  const long long first = (long long)blockIdx.x * blockDim.x * 4 + threadIdx.x;
  if (first >= n) return;
  uint4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = __ldcs(from + first + i * blockDim.x);
#pragma unroll
  for (int i = 0; i < 4; ++i) __stcs(to + first + i * blockDim.x, v[i]);
}

/// Reads `n` units `rounds` times, every block all of them: from L2 when they fit.
extern "C" __global__ void __launch_bounds__(512)
    probe_read(const uint4* from, long long n, int rounds, unsigned* sink) {
  unsigned sum = 0;
  const long long stride = blockDim.x;
  for (int round = 0; round < rounds; ++round) {
    // blocks start apart
    const long long shift = (long long)blockIdx.x * 977 * 512 % n / 512 * 512;
#pragma unroll 8
    for (long long i = threadIdx.x; i < n; i += stride) {
      uint4 v;
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "l"(from + (i + shift) % n));
      sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  if (sum == 0x12345678u) *sink = sum;
}

extern "C" __global__ void __launch_bounds__(1024) probe_shared(int rounds, unsigned* sink) {
  __shared__ uint4 data[1024];
  data[threadIdx.x] = make_uint4(threadIdx.x, rounds, 3, 4);
  __syncthreads();
  unsigned sum = 0;
  unsigned at = threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      uint4 v;
      asm volatile(
          "ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
          : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
          : "r"((unsigned)__cvta_generic_to_shared(data + ((at + i * 32 + round * 7) & 1023))));
      sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  if (sum == 0x12345678u) *sink = sum;
}

/// Sixteen independent chains of fused multiply-adds: 32 FLOP per step and thread.
template <class F>
__device__ void multiply_add(F a, F b, int rounds, unsigned* sink) {
  F c[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) c[i] = a + i;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 16; ++i) c[i] = c[i] * a + b;
  }
  F sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += c[i];
  if (sum == (F)1.2345678) *sink = 1;
}
extern "C" __global__ void __launch_bounds__(512)
    probe_fp32(float a, float b, int rounds, unsigned* sink) {
  multiply_add(a, b, rounds, sink);
}
extern "C" __global__ void __launch_bounds__(512)
    probe_fp64(double a, double b, int rounds, unsigned* sink) {
  multiply_add(a, b, rounds, sink);
}

/// Eight independent accumulators of mma.sync m16n8k16 per warp: 8 · 4096 FLOP per step and warp.
extern "C" __global__ void __launch_bounds__(256) probe_mma(int rounds, unsigned* sink) {
#if __CUDA_ARCH__ >= 800
  float c[8][4] = {};
  const unsigned a = 0x3f803f80u + threadIdx.x, b = 0x3f803f80u;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, "
          "{%5,%5}, {%0,%1,%2,%3};"
          : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
          : "r"(a), "r"(b));
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += c[i][0] + c[i][3];
  if (sum == 1.2345f) *sink = 1;
#endif
}

/// One thread follows `steps` pointers from where the launch before ended: ring[i] is the index of
/// the next.
extern "C" __global__ void probe_chase(const unsigned* ring, int steps, unsigned* sink) {
  unsigned at = *sink;
  for (int i = 0; i < steps; ++i) {
    unsigned next;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(next) : "l"(ring + at));
    at = next;
  }
  *sink = at;
}

extern "C" __global__ void probe_empty() {}
