// Mean squared error of two arrays: each thread adds to one result.
#include <cuda_runtime.h>

__global__ void mse(const float* a, const float* b, float* result, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float d = a[i] - b[i];
    atomicAdd(result, d * d / n);
  }
}

int main() {
  const int n = 1 << 20;
  float *a, *b, *result;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&result, sizeof(float));
  cudaMemset(result, 0, sizeof(float));
  mse<<<(n + 255) / 256, 256>>>(a, b, result, n);
  cudaDeviceSynchronize();
  return 0;
}
