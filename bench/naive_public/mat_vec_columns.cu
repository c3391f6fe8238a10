// y = A^T x; the matrix is read down its columns by every thread's loop.
#include <cuda_runtime.h>

__global__ void atx(double* A, double* x, double* y, int NX, int NY) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < NY) {
    y[j] = 0;
    for (int i = 0; i < NX; i++) y[j] += A[i * NY + j] * x[i];
  }
}

int main() {
  const int NX = 2048, NY = 1024;
  double *A, *x, *y;
  cudaMalloc(&A, NX * NY * sizeof(double));
  cudaMalloc(&x, NX * sizeof(double));
  cudaMalloc(&y, NY * sizeof(double));
  atx<<<(NY + 255) / 256, 256>>>(A, x, y, NX, NY);
  cudaDeviceSynchronize();
  return 0;
}
