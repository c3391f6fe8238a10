// Threads of a warp of which few are at work.
#include <cuda_runtime.h>

#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x

__global__ void few_lanes(float* y, const float* x) {
  INDEX;
  float v = x[i];
  if (i % 32 < 4)
    for (int k = 0; k < 500; ++k) v = v * 1.01f + k;
  y[i] = v;
}
__global__ void few_lanes_mended(float* y, const float* x) {
  INDEX;
  float v = x[i];
  if (i / 32 % 8 < 1)
    for (int k = 0; k < 500; ++k) v = v * 1.01f + k;
  y[i] = v;
}

__global__ void four_ways(float* y, const float* x) {
  INDEX;
  float v = x[i];
  switch (i % 4) {
    case 0: for (int k = 0; k < 300; ++k) v = v * 1.01f + k; break;
    case 1: for (int k = 0; k < 300; ++k) v = v * v - k; break;
    case 2: for (int k = 0; k < 300; ++k) v = fabsf(v) * 0.3f + k; break;
    default: for (int k = 0; k < 300; ++k) v = v * 0.5f - v * v; break;
  }
  y[i] = v;
}
__global__ void four_ways_mended(float* y, const float* x) {
  INDEX;
  float v = x[i];
  switch (i / 32 % 4) {
    case 0: for (int k = 0; k < 300; ++k) v = v * 1.01f + k; break;
    case 1: for (int k = 0; k < 300; ++k) v = v * v - k; break;
    case 2: for (int k = 0; k < 300; ++k) v = fabsf(v) * 0.3f + k; break;
    default: for (int k = 0; k < 300; ++k) v = v * 0.5f - v * v; break;
  }
  y[i] = v;
}

// Loops of very different lengths in one warp
__global__ void lengths(float* y, const float* x) {
  INDEX;
  float v = x[i];
  int most = i % 32 == 0 ? 1024 : 32;
  for (int k = 0; k < most; ++k) v = v * 1.01f + k;
  y[i] = v;
}
__global__ void lengths_mended(float* y, const float* x) {
  INDEX;
  float v = x[i];
  int most = i / 32 % 32 == 0 ? 1024 : 32;
  for (int k = 0; k < most; ++k) v = v * 1.01f + k;
  y[i] = v;
}

// One thread of a warp does the work of all of them
__global__ void one_lane(float* y, const float* x) {
  INDEX;
  if (threadIdx.x % 32 != 0) return;
  for (int j = 0; j < 32; ++j) {
    float v = x[i + j];
    for (int k = 0; k < 50; ++k) v = v * 1.01f + k;
    y[i + j] = v;
  }
}
__global__ void one_lane_mended(float* y, const float* x) {
  INDEX;
  float v = x[i];
  for (int k = 0; k < 50; ++k) v = v * 1.01f + k;
  y[i] = v;
}

int main() {
  const int n = 1048576;
  float *y, *x;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  few_lanes<<<n / 256, 256>>>(y, x);
  few_lanes_mended<<<n / 256, 256>>>(y, x);
  four_ways<<<n / 256, 256>>>(y, x);
  four_ways_mended<<<n / 256, 256>>>(y, x);
  lengths<<<n / 256, 256>>>(y, x);
  lengths_mended<<<n / 256, 256>>>(y, x);
  one_lane<<<n / 256, 256>>>(y, x);
  one_lane_mended<<<n / 256, 256>>>(y, x);
}
