// Five-point stencil in two dimensions; x is the slow axis of the thread.
#include <cuda_runtime.h>

__global__ void stencil2d(float* out, const float* in, int height, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < 1 || row >= height - 1 || col < 1 || col >= width - 1) return;
  out[row * width + col] = 0.2f * (in[row * width + col] + in[(row - 1) * width + col] +
                                   in[(row + 1) * width + col] + in[row * width + col - 1] +
                                   in[row * width + col + 1]);
}

int main() {
  const int height = 2048, width = 2048;
  float *out, *in;
  cudaMalloc(&out, height * width * sizeof(float));
  cudaMalloc(&in, height * width * sizeof(float));
  dim3 block(16, 16);
  dim3 grid((height + 15) / 16, (width + 15) / 16);
  stencil2d<<<grid, block>>>(out, in, height, width);
  cudaDeviceSynchronize();
  return 0;
}
