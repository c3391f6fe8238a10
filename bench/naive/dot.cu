// Dot product: every thread adds its part by an atomic.
#include <cuda_runtime.h>

__global__ void dot(float* result, const float* a, const float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(result, a[i] * b[i]);
}

int main() {
  const int n = 1 << 20;
  float *result, *a, *b;
  cudaMalloc(&result, sizeof(float));
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  dot<<<(n + 255) / 256, 256>>>(result, a, b, n);
  cudaDeviceSynchronize();
  return 0;
}
