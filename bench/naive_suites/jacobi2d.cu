// PolyBench's jacobi2d with rows and columns exchanged between the threads.
#include <cuda_runtime.h>

#define N 2048

__global__ void runJacobiCUDA_kernel1(int n, float* A, float* B) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if ((i >= 1) && (i < (n - 1)) && (j >= 1) && (j < (n - 1))) {
    B[i * n + j] = 0.2f * (A[i * n + j] + A[i * n + (j - 1)] + A[i * n + (1 + j)] +
                           A[(1 + i) * n + j] + A[(i - 1) * n + j]);
  }
}

int main() {
  float *A, *B;
  cudaMalloc(&A, N * N * sizeof(float));
  cudaMalloc(&B, N * N * sizeof(float));
  dim3 block(32, 8);
  dim3 grid((unsigned int)ceil(((float)N) / ((float)block.x)),
            (unsigned int)ceil(((float)N) / ((float)block.y)));
  runJacobiCUDA_kernel1<<<grid, block>>>(N, A, B);
  cudaDeviceSynchronize();
  return 0;
}
