// A Jacobi step with a 2-D index macro and doubles.
#include <cuda_runtime.h>

#define IDX(i, j) ((i) * (N + 2) + (j))

__global__ void jacobi(const double* u, const double* f, double* unew, int N, double h2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
  int j = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (i <= N && j <= N)
    unew[IDX(i, j)] = 0.25 * (u[IDX(i - 1, j)] + u[IDX(i + 1, j)] + u[IDX(i, j - 1)] +
                              u[IDX(i, j + 1)] + h2 * f[IDX(i, j)]);
}

int main() {
  const int N = 1022;
  double *u, *f, *unew;
  cudaMalloc(&u, (N + 2) * (N + 2) * sizeof(double));
  cudaMalloc(&f, (N + 2) * (N + 2) * sizeof(double));
  cudaMalloc(&unew, (N + 2) * (N + 2) * sizeof(double));
  dim3 block(8, 32), grid((N + 7) / 8, (N + 31) / 32);
  jacobi<<<grid, block>>>(u, f, unew, N, 1e-6);
  cudaDeviceSynchronize();
  return 0;
}
