// Second kernel of PolyBench's bicg: q = A p, one thread a row.
#include <cuda_runtime.h>

#define NX 4096
#define NY 2048

__global__ void bicg_kernel2(float* A, float* p, float* q) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < NX) {
    q[i] = 0.0f;
    for (int j = 0; j < NY; j++) {
      q[i] += A[i * NY + j] * p[j];
    }
  }
}

int main() {
  float *A, *p, *q;
  cudaMalloc(&A, sizeof(float) * NX * NY);
  cudaMalloc(&p, sizeof(float) * NY);
  cudaMalloc(&q, sizeof(float) * NX);
  bicg_kernel2<<<NX / 256, 256>>>(A, p, q);
  cudaDeviceSynchronize();
  return 0;
}
