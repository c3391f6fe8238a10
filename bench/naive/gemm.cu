// Product of two float matrices; one thread an element.
#include <cuda_runtime.h>

__global__ void gemm(float* c, const float* a, const float* b, int m, int n, int k) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}

int main() {
  const int m = 1024, n = 1024, k = 1024;
  float *a, *b, *c;
  cudaMalloc(&a, m * k * sizeof(float));
  cudaMalloc(&b, k * n * sizeof(float));
  cudaMalloc(&c, m * n * sizeof(float));
  dim3 block(16, 16);
  dim3 grid((n + 15) / 16, (m + 15) / 16);
  gemm<<<grid, block>>>(c, a, b, m, n, k);
  cudaDeviceSynchronize();
  return 0;
}
