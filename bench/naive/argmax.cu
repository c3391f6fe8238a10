// Index of the largest element of each row; one thread a row.
#include <cuda_runtime.h>

__global__ void argmax(int* index, const float* in, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float largest = in[row * cols];
  int at = 0;
  for (int j = 1; j < cols; ++j) {
    if (in[row * cols + j] > largest) {
      largest = in[row * cols + j];
      at = j;
    }
  }
  index[row] = at;
}

int main() {
  const int rows = 4096, cols = 1024;
  int* index;
  float* in;
  cudaMalloc(&index, rows * sizeof(int));
  cudaMalloc(&in, rows * cols * sizeof(float));
  argmax<<<(rows + 255) / 256, 256>>>(index, in, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
