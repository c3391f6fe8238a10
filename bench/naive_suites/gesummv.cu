// PolyBench's gesummv: y = alpha A x + beta B x.
#include <cuda_runtime.h>

__global__ void gesummv_kernel(int n, float alpha, float beta, float* A, float* B, float* tmp,
                               float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    tmp[i] = 0;
    y[i] = 0;
    for (int j = 0; j < n; j++) {
      tmp[i] += A[i * n + j] * x[j];
      y[i] += B[i * n + j] * x[j];
    }
    y[i] = alpha * tmp[i] + beta * y[i];
  }
}

int main() {
  const int n = 2048;
  float *A, *B, *tmp, *x, *y;
  cudaMalloc(&A, n * n * sizeof(float));
  cudaMalloc(&B, n * n * sizeof(float));
  cudaMalloc(&tmp, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  gesummv_kernel<<<(n + 255) / 256, 256>>>(n, 1.25f, 0.75f, A, B, tmp, x, y);
  cudaDeviceSynchronize();
  return 0;
}
