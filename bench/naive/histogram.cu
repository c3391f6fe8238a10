// Histogram of bytes, 256 bins, with one atomic in global memory per element.
#include <cuda_runtime.h>

__global__ void histogram(unsigned int* bins, const unsigned char* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = gridDim.x * blockDim.x;
  for (; i < n; i += stride) atomicAdd(&bins[data[i]], 1u);
}

int main() {
  const int n = 1 << 22;
  unsigned int* bins;
  unsigned char* data;
  cudaMalloc(&bins, 256 * sizeof(unsigned int));
  cudaMalloc(&data, n);
  histogram<<<512, 256>>>(bins, data, n);
  cudaDeviceSynchronize();
  return 0;
}
