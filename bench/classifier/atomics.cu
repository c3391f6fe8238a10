// Atomic updates of many threads that meet at few addresses.
#include <cuda_runtime.h>

#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x

__global__ void one_sum(float* y, const float* x) {
  INDEX;
  atomicAdd(y, x[i]);
}
__global__ void one_sum_mended(float* y, const float* x) {
  INDEX;
  float v = x[i];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, v, o);
  __shared__ float part[8];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 8; ++k) v += part[k];
    atomicAdd(y, v);
  }
}

__global__ void sixteen_bins(int* bins, const int* keys) {
  INDEX;
  atomicAdd(&bins[keys[i] & 15], 1);
}
__global__ void sixteen_bins_mended(int* bins, const int* keys) {
  INDEX;
  __shared__ int mine[16];
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  __syncthreads();
  for (int j = i; j < 1048576; j += gridDim.x * blockDim.x) atomicAdd(&mine[keys[j] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

__global__ void largest(int* y, const int* x) {
  INDEX;
  atomicMax(y, x[i]);
}
__global__ void largest_mended(int* y, const int* x) {
  INDEX;
  int v = x[i];
  for (int o = 16; o > 0; o /= 2) v = max(v, __shfl_down_sync(~0u, v, o));
  __shared__ int part[8];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 8; ++k) v = max(v, part[k]);
    atomicMax(y, v);
  }
}

// Each block of 256 threads adds to its own sum
__global__ void block_sums(float* y, const float* x) {
  INDEX;
  atomicAdd(&y[blockIdx.x], x[i] * x[i]);
}
__global__ void block_sums_mended(float* y, const float* x) {
  INDEX;
  float v = x[i] * x[i];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, v, o);
  __shared__ float part[8];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 8; ++k) v += part[k];
    y[blockIdx.x] = v;
  }
}

int main() {
  const int n = 1048576;
  float *y, *x;
  int *bins, *keys;
  cudaMalloc(&y, n / 256 * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&bins, 16 * sizeof(int));
  cudaMalloc(&keys, n * sizeof(int));
  one_sum<<<n / 256, 256>>>(y, x);
  one_sum_mended<<<n / 256, 256>>>(y, x);
  sixteen_bins<<<n / 256, 256>>>(bins, keys);
  sixteen_bins_mended<<<256, 256>>>(bins, keys);
  largest<<<n / 256, 256>>>(bins, keys);
  largest_mended<<<n / 256, 256>>>(bins, keys);
  block_sums<<<n / 256, 256>>>(y, x);
  block_sums_mended<<<n / 256, 256>>>(y, x);
}
