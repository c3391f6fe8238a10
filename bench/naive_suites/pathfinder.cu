// A row of a dynamic programme over a grid (as Rodinia's pathfinder, one step a launch).
#include <cuda_runtime.h>
#include <stdlib.h>

#define MIN(a, b) ((a) <= (b) ? (a) : (b))

__global__ void pathfinder_step(const int* wall, const int* src, int* dst, int cols, int row) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= cols) return;
  int shortest = src[x];
  if (x > 0) shortest = MIN(shortest, src[x - 1]);
  if (x < cols - 1) shortest = MIN(shortest, src[x + 1]);
  dst[x] = shortest + wall[row * cols + x];
}

int main(int argc, char** argv) {
  int cols = 1 << 20, rows = 16;
  int *gpuWall, *gpuSrc, *gpuDst;
  cudaMalloc((void**)&gpuWall, sizeof(int) * cols * rows);
  cudaMalloc((void**)&gpuSrc, sizeof(int) * cols);
  cudaMalloc((void**)&gpuDst, sizeof(int) * cols);
  pathfinder_step<<<(cols + 127) / 128, 128>>>(gpuWall, gpuSrc, gpuDst, cols, 3);
  cudaDeviceSynchronize();
  return 0;
}
