// Inclusive sums of each column of a matrix, a thread a column.
#include <cuda_runtime.h>

__global__ void cumsum_columns(float* a, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  for (int r = 1; r < rows; r++) a[r * cols + c] += a[(r - 1) * cols + c];
}

int main() {
  const int rows = 512, cols = 4096;
  float* a;
  cudaMalloc(&a, rows * cols * sizeof(float));
  cumsum_columns<<<(cols + 127) / 128, 128>>>(a, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
