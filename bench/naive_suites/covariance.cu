// PolyBench's covariance: a thread computes a row of the symmetric matrix.
#include <cuda_runtime.h>

#define M 512
#define N 512

__global__ void covar_kernel(float* symmat, float* data) {
  int j1 = blockIdx.x * blockDim.x + threadIdx.x;
  int i, j2;
  if (j1 < M) {
    for (j2 = j1; j2 < M; j2++) {
      float sum = 0.0f;
      for (i = 0; i < N; i++) {
        sum += data[i * M + j1] * data[i * M + j2];
      }
      symmat[j1 * M + j2] = sum;
      symmat[j2 * M + j1] = sum;
    }
  }
}

int main() {
  float *data, *symmat;
  cudaMalloc(&data, sizeof(float) * M * N);
  cudaMalloc(&symmat, sizeof(float) * M * M);
  covar_kernel<<<M / 256, 256>>>(symmat, data);
  cudaDeviceSynchronize();
  return 0;
}
