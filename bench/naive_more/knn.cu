// Squared distances of all pairs of points of 16 coordinates.
#include <cuda_runtime.h>

__global__ void knn(const float* a, const float* b, float* dist, int n, int m, int dim) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < m) {
    float d = 0;
    for (int k = 0; k < dim; k++) {
      float t = a[i * dim + k] - b[j * dim + k];
      d += t * t;
    }
    dist[i * m + j] = d;
  }
}

int main() {
  const int n = 2048, m = 2048, dim = 16;
  float *a, *b, *dist;
  cudaMalloc(&a, n * dim * sizeof(float));
  cudaMalloc(&b, m * dim * sizeof(float));
  cudaMalloc(&dist, n * m * sizeof(float));
  knn<<<dim3(m / 16, n / 16), dim3(16, 16)>>>(a, b, dist, n, m, dim);
  cudaDeviceSynchronize();
  return 0;
}
