// Grey values of pixels of three bytes.
#include <cuda_runtime.h>

__global__ void rgb2gray(unsigned char* Pout, const unsigned char* Pin, int width, int height) {
  int Col = threadIdx.x + blockIdx.x * blockDim.x;
  int Row = threadIdx.y + blockIdx.y * blockDim.y;
  if (Col < width && Row < height) {
    int greyOffset = Row * width + Col;
    int rgbOffset = greyOffset * 3;
    unsigned char r = Pin[rgbOffset];
    unsigned char g = Pin[rgbOffset + 1];
    unsigned char b = Pin[rgbOffset + 2];
    Pout[greyOffset] = 0.21f * r + 0.71f * g + 0.07f * b;
  }
}

int main() {
  const int width = 2048, height = 2048;
  unsigned char *Pin, *Pout;
  cudaMalloc(&Pin, width * height * 3);
  cudaMalloc(&Pout, width * height);
  dim3 dimBlock(16, 16, 1), dimGrid((width + 15) / 16, (height + 15) / 16, 1);
  rgb2gray<<<dimGrid, dimBlock>>>(Pout, Pin, width, height);
  cudaDeviceSynchronize();
  return 0;
}
