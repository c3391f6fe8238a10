// Gray values of an image of interleaved channels, one column of threads a row (uncoalesced).
#include <cuda_runtime.h>

__global__ void rgb_to_gray(unsigned char* gray, const unsigned char* rgb, int width, int height) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (col < width && row < height) {
    int offset = row * width + col;
    int rgbOffset = offset * 3;
    unsigned char r = rgb[rgbOffset];
    unsigned char g = rgb[rgbOffset + 1];
    unsigned char b = rgb[rgbOffset + 2];
    gray[offset] = 0.21f * r + 0.71f * g + 0.07f * b;
  }
}

int main() {
  const int width = 2048, height = 1024;
  unsigned char *gray, *rgb;
  cudaMalloc(&gray, width * height);
  cudaMalloc(&rgb, 3 * width * height);
  dim3 block(16, 16);
  dim3 grid(height / 16, width / 16);
  rgb_to_gray<<<grid, block>>>(gray, rgb, width, height);
  cudaDeviceSynchronize();
  return 0;
}
