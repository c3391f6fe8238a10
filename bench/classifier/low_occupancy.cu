// Shared memory or registers leave room for few warps, and latencies show.
#include <cuda_runtime.h>

// Chains of loads, each address from the value before
template <int kWords>
__device__ void Chains(float* y, const float* x, int n) {
  __shared__ float room[kWords];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 32) room[threadIdx.x * (kWords / 32)] = x[threadIdx.x];
  __syncthreads();
  int at = i;
  float s = 0;
  for (int k = 0; k < 16; ++k) {
    float v = x[at];
    s += v;
    at = (at + 4096 + (v > 1e30f)) % n;
  }
  y[i] = s + room[(threadIdx.x % 32) * (kWords / 32)];
}
__global__ void shared_chains(float* y, const float* x, int n) { Chains<11264>(y, x, n); }
__global__ void shared_chains_mended(float* y, const float* x, int n) { Chains<1024>(y, x, n); }

// Sums with little arithmetic, one block of 64 threads in 40 KB
template <int kWords>
__device__ void Sums(float* y, const float* x, int n) {
  __shared__ float room[kWords];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  room[threadIdx.x * (kWords / 64)] = 1;
  __syncthreads();
  float s = 0;
  for (int k = 0; k < 32; ++k) s = s * 0.5f + x[(i + k * 8192) % n];
  y[i] = s * room[((threadIdx.x + 1) % 64) * (kWords / 64)];
}
__global__ void shared_sums(float* y, const float* x, int n) { Sums<10240>(y, x, n); }
__global__ void shared_sums_mended(float* y, const float* x, int n) { Sums<64>(y, x, n); }

// Blocks of 32 threads: an SM holds few of them
__global__ void tiny_blocks(float* y, const float* x, int n) {
  __shared__ float room[2048];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  room[threadIdx.x] = x[i];
  __syncthreads();
  int at = i;
  float s = room[threadIdx.x ^ 1];
  for (int k = 0; k < 16; ++k) {
    float v = x[at];
    s += v;
    at = (at + 8192 + (v > 1e30f)) % n;
  }
  y[i] = s;
}
__global__ void tiny_blocks_mended(float* y, const float* x, int n) {
  __shared__ float room[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  room[threadIdx.x] = x[i];
  __syncthreads();
  int at = i;
  float s = room[threadIdx.x ^ 1];
  for (int k = 0; k < 16; ++k) {
    float v = x[at];
    s += v;
    at = (at + 8192 + (v > 1e30f)) % n;
  }
  y[i] = s;
}

// Many registers: few warps, and each waits for its loads
__global__ void __launch_bounds__(128) registers(float* y, const float* x, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[112];
#pragma unroll
  for (int k = 0; k < 112; ++k) a[k] = k;
  int at = i;
  for (int r = 0; r < rounds; ++r) {
    float v = x[at];
    at = (at + 8192 + (v > 1e30f)) % n;
#pragma unroll
    for (int k = 0; k < 112; k += 14) a[k] += v * a[(k + 17) % 112];
    if (v > 1e30f) {
#pragma unroll
      for (int k = 0; k < 112; ++k) a[k] += a[(k + 5) % 112] * v;
    }
  }
  float s = 0;
#pragma unroll
  for (int k = 0; k < 112; ++k) s += a[k] * (k + 1);
  y[i] = s;
}
__global__ void __launch_bounds__(128) registers_mended(float* y, const float* x, int n,
                                                        int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) a[k] = k;
  int at = i;
  for (int r = 0; r < rounds; ++r) {
    float v = x[at];
    at = (at + 8192 + (v > 1e30f)) % n;
#pragma unroll
    for (int k = 0; k < 8; ++k) a[k] += v * a[(k + 3) % 8];
  }
  float s = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) s += a[k] * (k + 1);
  y[i] = s;
}

int main() {
  const int n = 1048576, rounds = 64;
  float *y, *x;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  shared_chains<<<n / 128, 128>>>(y, x, n);
  shared_chains_mended<<<n / 128, 128>>>(y, x, n);
  shared_sums<<<n / 64, 64>>>(y, x, n);
  shared_sums_mended<<<n / 64, 64>>>(y, x, n);
  tiny_blocks<<<n / 32, 32>>>(y, x, n);
  tiny_blocks_mended<<<n / 256, 256>>>(y, x, n);
  registers<<<2048, 128>>>(y, x, n, rounds);
  registers_mended<<<2048, 128>>>(y, x, n, rounds);
}
