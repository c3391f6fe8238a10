// Smallest and largest element of each row, written side by side; a thread a row.
#include <cuda_runtime.h>

__global__ void min_max(const int* v, int2* result, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  int lo = v[r * cols], hi = v[r * cols];
  for (int c = 1; c < cols; ++c) {
    if (v[r * cols + c] < lo) lo = v[r * cols + c];
    if (v[r * cols + c] > hi) hi = v[r * cols + c];
  }
  result[r].x = lo;
  result[r].y = hi;
}

int main() {
  const int rows = 4096, cols = 512;
  int* v;
  int2* result;
  cudaMalloc(&v, rows * cols * sizeof(int));
  cudaMalloc(&result, rows * sizeof(int2));
  min_max<<<(rows + 127) / 128, 128>>>(v, result, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
