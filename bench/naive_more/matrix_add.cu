// Sum of two matrices; rows on x.
#include <cuda_runtime.h>

__global__ void matrix_add(const float* a, const float* b, float* c, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < rows && j < cols) {
    int index = i * cols + j;
    c[index] = a[index] + b[index];
  }
}

int main() {
  const int rows = 2048, cols = 2048;
  float *a, *b, *c;
  cudaMalloc(&a, rows * cols * sizeof(float));
  cudaMalloc(&b, rows * cols * sizeof(float));
  cudaMalloc(&c, rows * cols * sizeof(float));
  matrix_add<<<dim3(128, 128), dim3(16, 16)>>>(a, b, c, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
