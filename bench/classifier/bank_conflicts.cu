// Accesses of a warp to one bank of shared memory; padding or another order mends them.
#include <cuda_runtime.h>

__global__ void columns_of_tile(float* y, const float* x) {
  __shared__ float t[32][32];
  int l = threadIdx.x % 32;
  for (int k = threadIdx.x / 32; k < 32; k += 8) t[k][l] = x[blockIdx.x * 1024 + k * 32 + l];
  __syncthreads();
  float s = 0;
  for (int q = 0; q < 64; ++q)
    for (int k = threadIdx.x / 32; k < 32; k += 8) s += t[l][(k + q) % 32];
  y[blockIdx.x * 256 + threadIdx.x] = s;
}
__global__ void columns_of_tile_mended(float* y, const float* x) {
  __shared__ float t[32][33];
  int l = threadIdx.x % 32;
  for (int k = threadIdx.x / 32; k < 32; k += 8) t[k][l] = x[blockIdx.x * 1024 + k * 32 + l];
  __syncthreads();
  float s = 0;
  for (int q = 0; q < 64; ++q)
    for (int k = threadIdx.x / 32; k < 32; k += 8) s += t[l][(k + q) % 32];
  y[blockIdx.x * 256 + threadIdx.x] = s;
}

__global__ void stride_of_eight(float* y, const float* x) {
  __shared__ float t[2048];
  for (int k = threadIdx.x; k < 2048; k += 256) t[k] = x[k];
  __syncthreads();
  float s = 0;
  for (int q = 0; q < 256; ++q) s += t[(threadIdx.x * 8 + q) % 2048];
  y[blockIdx.x * 256 + threadIdx.x] = s;
}
__global__ void stride_of_eight_mended(float* y, const float* x) {
  __shared__ float t[2048];
  for (int k = threadIdx.x; k < 2048; k += 256) t[k] = x[k];
  __syncthreads();
  float s = 0;
  for (int q = 0; q < 256; ++q) s += t[(threadIdx.x * 9 + q) % 2048];
  y[blockIdx.x * 256 + threadIdx.x] = s;
}

__global__ void row_of_64_per_thread(float* y, const float* x) {
  __shared__ float t[64 * 64];
  for (int k = threadIdx.x; k < 4096; k += 64) t[k] = x[blockIdx.x * 4096 + k];
  __syncthreads();
  float s = 0;
  for (int r = 0; r < 8; ++r)
    for (int j = 0; j < 64; ++j) s += t[threadIdx.x * 64 + (j ^ r)];
  y[blockIdx.x * 64 + threadIdx.x] = s;
}
__global__ void row_of_64_per_thread_mended(float* y, const float* x) {
  __shared__ float t[64 * 65];
  for (int k = threadIdx.x; k < 4096; k += 64) t[k / 64 * 65 + k % 64] = x[blockIdx.x * 4096 + k];
  __syncthreads();
  float s = 0;
  for (int r = 0; r < 8; ++r)
    for (int j = 0; j < 64; ++j) s += t[threadIdx.x * 65 + (j ^ r)];
  y[blockIdx.x * 64 + threadIdx.x] = s;
}

// Stores of a column, again and again
__global__ void stored_columns(float* y, const float* x) {
  __shared__ float t[32][32];
  int l = threadIdx.x % 32, w = threadIdx.x / 32;
  float v = x[blockIdx.x * 256 + threadIdx.x];
  for (int q = 0; q < 64; ++q) {
    t[l][(w + q) % 32] = v + q;
    __syncthreads();
  }
  y[blockIdx.x * 256 + threadIdx.x] = t[w][l];
}
__global__ void stored_columns_mended(float* y, const float* x) {
  __shared__ float t[32][32];
  int l = threadIdx.x % 32, w = threadIdx.x / 32;
  float v = x[blockIdx.x * 256 + threadIdx.x];
  for (int q = 0; q < 64; ++q) {
    t[(w + q) % 32][l] = v + q;
    __syncthreads();
  }
  y[blockIdx.x * 256 + threadIdx.x] = t[l][w];
}

int main() {
  const int n = 1048576;
  float *y, *x;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  columns_of_tile<<<n / 1024, 256>>>(y, x);
  columns_of_tile_mended<<<n / 1024, 256>>>(y, x);
  stride_of_eight<<<1024, 256>>>(y, x);
  stride_of_eight_mended<<<1024, 256>>>(y, x);
  row_of_64_per_thread<<<256, 64>>>(y, x);
  row_of_64_per_thread_mended<<<256, 64>>>(y, x);
  stored_columns<<<1024, 256>>>(y, x);
  stored_columns_mended<<<1024, 256>>>(y, x);
}
