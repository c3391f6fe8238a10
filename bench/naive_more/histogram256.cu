// Histogram of bytes in global memory; one element a thread.
#include <cuda_runtime.h>

__global__ void histogram256(const unsigned char* data, int* hist, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&(hist[data[i]]), 1);
}

int main() {
  const int n = 1 << 22;
  unsigned char* data;
  int* hist;
  cudaMalloc(&data, n);
  cudaMalloc(&hist, 256 * sizeof(int));
  histogram256<<<(n + 255) / 256, 256>>>(data, hist, n);
  cudaDeviceSynchronize();
  return 0;
}
