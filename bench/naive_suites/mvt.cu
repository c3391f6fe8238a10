// First kernel of PolyBench's mvt: x1 += A y1.
#include <cuda_runtime.h>
#define N 4096

__global__ void mvt_kernel1(float* a, float* x1, float* y_1) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    int j;
    for (j = 0; j < N; j++) {
      x1[i] += a[i * N + j] * y_1[j];
    }
  }
}

int main() {
  float *a, *x1, *y_1;
  cudaMalloc((void**)&a, sizeof(float) * N * N);
  cudaMalloc((void**)&x1, sizeof(float) * N);
  cudaMalloc((void**)&y_1, sizeof(float) * N);
  dim3 block(256, 1);
  dim3 grid((size_t)ceil((float)N / ((float)256)), 1);
  mvt_kernel1<<<grid, block>>>(a, x1, y_1);
  cudaDeviceSynchronize();
  return 0;
}
