// Inclusive sums within blocks by Hillis and Steele, in shared memory.
#include <cuda_runtime.h>

#define BLOCK 512

__global__ void block_scan(const float* in, float* out, int n) {
  __shared__ float temp[BLOCK];
  int tid = threadIdx.x;
  int gid = blockIdx.x * BLOCK + tid;
  temp[tid] = gid < n ? in[gid] : 0.0f;
  __syncthreads();
  for (int offset = 1; offset < BLOCK; offset *= 2) {
    float value = 0.0f;
    if (tid >= offset) value = temp[tid - offset];
    __syncthreads();
    temp[tid] += value;
    __syncthreads();
  }
  if (gid < n) out[gid] = temp[tid];
}

int main() {
  const int n = 1 << 20;
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  block_scan<<<n / BLOCK, BLOCK>>>(in, out, n);
  cudaDeviceSynchronize();
  return 0;
}
