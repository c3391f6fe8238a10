// Three histograms of the channels of an image, with global atomics.
#include <cuda_runtime.h>
#include <stdlib.h>

struct Pixel {
  unsigned char r, g, b, a;
};

__global__ void histogram_rgb(const uchar4* image, unsigned int* red, unsigned int* green,
                              unsigned int* blue, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    uchar4 p = image[i];
    atomicAdd(&red[p.x], 1);
    atomicAdd(&green[p.y], 1);
    atomicAdd(&blue[p.z], 1);
  }
}

int main() {
  const int n = 1 << 20;
  uchar4* image;
  unsigned int *red, *green, *blue;
  cudaMalloc(&image, n * sizeof(uchar4));
  cudaMalloc(&red, 256 * sizeof(unsigned int));
  cudaMalloc(&green, 256 * sizeof(unsigned int));
  cudaMalloc(&blue, 256 * sizeof(unsigned int));
  cudaMemset(red, 0, 256 * sizeof(unsigned int));
  cudaMemset(green, 0, 256 * sizeof(unsigned int));
  cudaMemset(blue, 0, 256 * sizeof(unsigned int));
  histogram_rgb<<<(n + 255) / 256, 256>>>(image, red, green, blue, n);
  cudaDeviceSynchronize();
  return 0;
}
