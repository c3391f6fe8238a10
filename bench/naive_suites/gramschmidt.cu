// Third kernel of PolyBench's gramschmidt: one step of the orthogonalisation.
#include <cuda_runtime.h>

#define M 1024
#define N 1024

__global__ void gramschmidt_kernel3(float* a, float* r, float* q, int k) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if ((j > k) && (j < N)) {
    r[k * N + j] = 0.0f;
    int i;
    for (i = 0; i < M; i++) {
      r[k * N + j] += q[i * N + k] * a[i * N + j];
    }
    for (i = 0; i < M; i++) {
      a[i * N + j] -= q[i * N + k] * r[k * N + j];
    }
  }
}

int main() {
  float *A_gpu, *R_gpu, *Q_gpu;
  cudaMalloc((void**)&A_gpu, sizeof(float) * M * N);
  cudaMalloc((void**)&R_gpu, sizeof(float) * M * N);
  cudaMalloc((void**)&Q_gpu, sizeof(float) * M * N);
  gramschmidt_kernel3<<<(N + 255) / 256, 256>>>(A_gpu, R_gpu, Q_gpu, 16);
  cudaDeviceSynchronize();
  return 0;
}
