// Sums of the columns of a matrix, added up in memory; one thread a column.
#include <cuda_runtime.h>

__global__ void column_sum(float* out, float* in, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  out[col] = 0.0f;
  for (int i = 0; i < rows; ++i) out[col] += in[i * cols + col];
}

int main() {
  const int rows = 1024, cols = 4096;
  float *out, *in;
  cudaMalloc(&out, cols * sizeof(float));
  cudaMalloc(&in, rows * cols * sizeof(float));
  column_sum<<<(cols + 255) / 256, 256>>>(out, in, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
