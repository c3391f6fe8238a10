// Rows of a separable filter of radius 8.
#include <cuda_runtime.h>

#define RADIUS 8
__global__ void separable(float* dst, const float* src, const float* filter, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float sum = 0;
  for (int k = -RADIUS; k <= RADIUS; k++) {
    int d = x + k;
    if (d >= 0 && d < w) sum += src[y * w + d] * filter[RADIUS - k];
  }
  dst[y * w + x] = sum;
}

int main() {
  const int w = 2048, h = 2048;
  float *dst, *src, *filter;
  cudaMalloc(&dst, w * h * sizeof(float));
  cudaMalloc(&src, w * h * sizeof(float));
  cudaMalloc(&filter, (2 * RADIUS + 1) * sizeof(float));
  separable<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(dst, src, filter, w, h);
  cudaDeviceSynchronize();
  return 0;
}
