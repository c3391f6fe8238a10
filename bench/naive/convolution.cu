// Convolution of an image with a 5 x 5 filter; y is on threadIdx.x.
#include <cuda_runtime.h>

__global__ void convolution(float* out, const float* image, const float* filter, int height,
                            int width) {
  int y = blockIdx.x * blockDim.x + threadIdx.x;
  int x = blockIdx.y * blockDim.y + threadIdx.y;
  if (y >= height - 4 || x >= width - 4) return;
  float sum = 0.0f;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j) sum += image[(y + i) * width + x + j] * filter[i * 5 + j];
  out[y * width + x] = sum;
}

int main() {
  const int height = 1024, width = 1024;
  float *out, *image, *filter;
  cudaMalloc(&out, height * width * sizeof(float));
  cudaMalloc(&image, height * width * sizeof(float));
  cudaMalloc(&filter, 25 * sizeof(float));
  dim3 block(16, 16);
  dim3 grid((height + 15) / 16, (width + 15) / 16);
  convolution<<<grid, block>>>(out, image, filter, height, width);
  cudaDeviceSynchronize();
  return 0;
}
