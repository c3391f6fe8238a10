// Means of the columns; one thread a column, few blocks.
#include <cuda_runtime.h>

__global__ void column_mean(float* mean, const float* data, int m, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < m) {
    mean[j] = 0.0;
    for (int i = 0; i < n; i++) mean[j] += data[i * m + j];
    mean[j] /= (float)n;
  }
}

int main() {
  const int m = 1024, n = 1024;
  float *mean, *data;
  cudaMalloc(&mean, m * sizeof(float));
  cudaMalloc(&data, m * n * sizeof(float));
  column_mean<<<(m + 255) / 256, 256>>>(mean, data, m, n);
  cudaDeviceSynchronize();
  return 0;
}
