// Sum by a tree whose threads diverge.
#include <cuda_runtime.h>

__global__ void reduce(const float* g_in, float* g_out) {
  __shared__ float sdata[256];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = g_in[i];
  __syncthreads();
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) {
      sdata[tid] += sdata[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) g_out[blockIdx.x] = sdata[0];
}

int main() {
  const int n = 1 << 22;
  float *g_in, *g_out;
  cudaMalloc(&g_in, n * sizeof(float));
  cudaMalloc(&g_out, n / 256 * sizeof(float));
  reduce<<<n / 256, 256>>>(g_in, g_out);
  cudaDeviceSynchronize();
  return 0;
}
