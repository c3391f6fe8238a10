// Transposes a matrix; one thread an element.
#include <cuda_runtime.h>

__global__ void transpose(float* out, const float* in, int rows, int cols) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < cols && y < rows) out[x * rows + y] = in[y * cols + x];
}

int main() {
  const int rows = 2048, cols = 2048;
  float *out, *in;
  cudaMalloc(&out, rows * cols * sizeof(float));
  cudaMalloc(&in, rows * cols * sizeof(float));
  dim3 block(16, 16);
  dim3 grid((cols + 15) / 16, (rows + 15) / 16);
  transpose<<<grid, block>>>(out, in, rows, cols);
  cudaDeviceSynchronize();
  return 0;
}
