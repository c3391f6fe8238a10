// Inclusive sums of each row, one thread a row.
#include <cuda_runtime.h>

__global__ void scan(float* out, const float* in, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int j = 0; j < cols; ++j) {
    sum += in[row * cols + j];
    out[row * cols + j] = sum;
  }
}

int main() {
  const int rows = 4096, cols = 512;
  float *out, *in;
  cudaMalloc(&out, rows * cols * sizeof(float));
  cudaMalloc(&in, rows * cols * sizeof(float));
  scan<<<(rows + 127) / 128, 128>>>(out, in, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
