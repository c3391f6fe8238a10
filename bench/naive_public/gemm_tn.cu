// C = A^T B as column-major libraries have it; leading dimensions.
#include <cuda_runtime.h>

__global__ void sgemm_tn(int m, int n, int k, float alpha, const float* A, int lda, const float* B,
                         int ldb, float* C, int ldc) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m) return;
  if (j >= n) return;
  float c = 0.f;
  for (int l = 0; l < k; l++) c += A[i * lda + l] * B[j * ldb + l];
  C[j * ldc + i] = alpha * c;
}

int main() {
  int m = 768, n = 512, k = 256;
  float *A, *B, *C;
  cudaMalloc(&A, m * k * sizeof(float));
  cudaMalloc(&B, n * k * sizeof(float));
  cudaMalloc(&C, m * n * sizeof(float));
  dim3 threads(32, 8);
  dim3 blocks((n + 31) / 32, (m + 7) / 8);
  sgemm_tn<<<blocks, threads>>>(m, n, k, 2.0f, A, k, B, k, C, m);
  cudaDeviceSynchronize();
  return 0;
}
