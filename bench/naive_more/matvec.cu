// Product of a matrix and a vector; one thread a row.
#include <cuda_runtime.h>

__global__ void matvec(const float* A, const float* x, float* y, int m, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m) {
    float sum = 0.0f;
    for (int j = 0; j < n; j++) {
      sum += A[row * n + j] * x[j];
    }
    y[row] = sum;
  }
}

int main() {
  const int m = 4096, n = 2048;
  float *A, *x, *y;
  cudaMalloc(&A, m * n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, m * sizeof(float));
  matvec<<<(m + 255) / 256, 256>>>(A, x, y, m, n);
  cudaDeviceSynchronize();
  return 0;
}
