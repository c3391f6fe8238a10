// Sum of an array: the first of the well-known reductions, with divergent threads.
#include <cuda_runtime.h>

__global__ void reduce0(int* g_idata, int* g_odata) {
  extern __shared__ int sdata[];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = g_idata[i];
  __syncthreads();
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

int main() {
  const int n = 1 << 22, threads = 256;
  int *in, *out;
  cudaMalloc(&in, n * sizeof(int));
  cudaMalloc(&out, n / threads * sizeof(int));
  reduce0<<<n / threads, threads, threads * sizeof(int)>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
