// A step of the wave equation on three buffers with a strided 2-D grid.
#include <cuda_runtime.h>

__global__ void wave(float* next, const float* now, const float* before, int nx, int ny, float c) {
  for (int y = blockIdx.x * blockDim.x + threadIdx.x; y < ny; y += blockDim.x * gridDim.x) {
    for (int x = blockIdx.y * blockDim.y + threadIdx.y; x < nx; x += blockDim.y * gridDim.y) {
      int at = y * nx + x;
      if (x == 0 || y == 0 || x == nx - 1 || y == ny - 1) {
        next[at] = 0;
        continue;
      }
      float lap = now[at - 1] + now[at + 1] + now[at - nx] + now[at + nx] - 4.0 * now[at];
      next[at] = 2 * now[at] - before[at] + c * c * lap;
    }
  }
}

int main() {
  const int nx = 1024, ny = 512;
  float *next, *now, *before;
  cudaMalloc(&next, nx * ny * sizeof(float));
  cudaMalloc(&now, nx * ny * sizeof(float));
  cudaMalloc(&before, nx * ny * sizeof(float));
  wave<<<dim3(16, 16), dim3(16, 16)>>>(next, now, before, nx, ny, 0.4f);
  cudaDeviceSynchronize();
  return 0;
}
