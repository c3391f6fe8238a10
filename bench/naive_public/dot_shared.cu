// Dot product as the first book on CUDA has it: partial sums of blocks, a modulo in the tree.
#include <cuda_runtime.h>

__global__ void dot(float* a, float* b, float* c, int N) {
  __shared__ float cache[256];
  int tid = threadIdx.x + blockIdx.x * blockDim.x;
  int cacheIndex = threadIdx.x;
  float temp = 0;
  while (tid < N) {
    temp += a[tid] * b[tid];
    tid += blockDim.x * gridDim.x;
  }
  cache[cacheIndex] = temp;
  __syncthreads();
  int i = blockDim.x / 2;
  while (i != 0) {
    if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
    __syncthreads();
    i /= 2;
  }
  if (cacheIndex == 0) c[blockIdx.x] = cache[0];
}

int main() {
  const int N = 33 * 1024 * 32;
  float *a, *b, *c;
  cudaMalloc((void**)&a, N * sizeof(float));
  cudaMalloc((void**)&b, N * sizeof(float));
  cudaMalloc((void**)&c, 32 * sizeof(float));
  dot<<<32, 256>>>(a, b, c, N);
  cudaDeviceSynchronize();
  return 0;
}
