// Product with the second matrix transposed, alpha and beta.
#include <cuda_runtime.h>

__global__ void gemm_nt(int M, int N, int K, float alpha, const float* A, const float* B, float beta,
                        float* C) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < M && y < N) {
    float tmp = 0.0;
    for (int i = 0; i < K; ++i) {
      tmp += A[x * K + i] * B[y * K + i];
    }
    C[x * N + y] = alpha * tmp + beta * C[x * N + y];
  }
}

int main() {
  const int M = 1024, N = 1024, K = 512;
  float *A, *B, *C;
  cudaMalloc(&A, M * K * sizeof(float));
  cudaMalloc(&B, N * K * sizeof(float));
  cudaMalloc(&C, M * N * sizeof(float));
  dim3 grid(M / 32, N / 32), block(32, 32);
  gemm_nt<<<grid, block>>>(M, N, K, 1.5f, A, B, 0.5f, C);
  cudaDeviceSynchronize();
  return 0;
}
