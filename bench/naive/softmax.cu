// Softmax of the rows of a matrix; one thread a row.
#include <cuda_runtime.h>

__global__ void softmax(float* out, const float* in, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float largest = -1e30f;
  for (int j = 0; j < cols; ++j) largest = fmaxf(largest, in[row * cols + j]);
  float sum = 0.0f;
  for (int j = 0; j < cols; ++j) sum += expf(in[row * cols + j] - largest);
  for (int j = 0; j < cols; ++j) out[row * cols + j] = expf(in[row * cols + j] - largest) / sum;
}

int main() {
  const int rows = 4096, cols = 1024;
  float *out, *in;
  cudaMalloc(&out, rows * cols * sizeof(float));
  cudaMalloc(&in, rows * cols * sizeof(float));
  softmax<<<(rows + 255) / 256, 256>>>(out, in, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
