// One step of an LU decomposition.
#include <cuda_runtime.h>

__global__ void lu_step(float* A, int n, int k) {
  int i = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
  int j = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n && j < n) A[i * n + j] -= A[i * n + k] * A[k * n + j];
}

int main() {
  const int n = 2048, k = 0;
  float* A;
  cudaMalloc(&A, n * n * sizeof(float));
  lu_step<<<dim3(128, 128), dim3(16, 16)>>>(A, n, k);
  cudaDeviceSynchronize();
  return 0;
}
