// Sparse matrix (CSR) times vector; one thread a row.
#include <cuda_runtime.h>

__global__ void spmv(float* y, const int* row_start, const int* column, const float* value,
                     const float* x, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int j = row_start[row]; j < row_start[row + 1]; ++j) sum += value[j] * x[column[j]];
  y[row] = sum;
}

int main() {
  const int rows = 32768, entries = 64 * 32768;
  float *y, *value, *x;
  int *row_start, *column;
  cudaMalloc(&y, rows * sizeof(float));
  cudaMalloc(&row_start, (rows + 1) * sizeof(int));
  cudaMalloc(&column, entries * sizeof(int));
  cudaMalloc(&value, entries * sizeof(float));
  cudaMalloc(&x, rows * sizeof(float));
  spmv<<<(rows + 127) / 128, 128>>>(y, row_start, column, value, x, rows);
  cudaDeviceSynchronize();
  return 0;
}
