// Sums of the rows of a matrix; one thread a row.
#include <cuda_runtime.h>

__global__ void row_sum(float* out, const float* in, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int j = 0; j < cols; ++j) sum += in[row * cols + j];
  out[row] = sum;
}

int main() {
  const int rows = 4096, cols = 1024;
  float *out, *in;
  cudaMalloc(&out, rows * sizeof(float));
  cudaMalloc(&in, rows * cols * sizeof(float));
  row_sum<<<(rows + 255) / 256, 256>>>(out, in, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
