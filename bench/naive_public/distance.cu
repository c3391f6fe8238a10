// Squared distances between the rows of two matrices.
#include <cuda_runtime.h>

__global__ void pairwise(const float* X, const float* Y, float* D, int n, int m, int dim) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n && j < m) {
    float s = 0;
    for (int k = 0; k < dim; k++) {
      float t = X[i * dim + k] - Y[j * dim + k];
      s += t * t;
    }
    D[i * m + j] = s;
  }
}

int main() {
  const int n = 1024, m = 512, dim = 128;
  float *X, *Y, *D;
  cudaMalloc(&X, n * dim * sizeof(float));
  cudaMalloc(&Y, m * dim * sizeof(float));
  cudaMalloc(&D, n * m * sizeof(float));
  dim3 threads(16, 16), blocks(n / 16, m / 16);
  pairwise<<<blocks, threads>>>(X, Y, D, n, m, dim);
  cudaDeviceSynchronize();
  return 0;
}
