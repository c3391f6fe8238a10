// Euclidean norms of rows; one thread a row.
#include <cuda_runtime.h>

__global__ void row_norms(const float* m, float* norms, int rows, int cols) {
  int r = threadIdx.x + blockDim.x * blockIdx.x;
  if (r < rows) {
    float acc = 0.0;
    for (int c = 0; c < cols; c++) acc += m[c + r * cols] * m[c + r * cols];
    norms[r] = sqrtf(acc);
  }
}

int main() {
  const int rows = 8192, cols = 256;
  float *m, *norms;
  cudaMalloc(&m, rows * cols * sizeof(float));
  cudaMalloc(&norms, rows * sizeof(float));
  row_norms<<<(rows + 255) / 256, 256>>>(m, norms, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
