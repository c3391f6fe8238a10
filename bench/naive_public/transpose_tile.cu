// Transposition through a tile without padding; the grid has x and y swapped.
#include <cuda_runtime.h>

#define TILE 32

__global__ void transposeTile(double* odata, const double* idata, int width, int height) {
  __shared__ double tile[TILE][TILE];
  int x = blockIdx.y * TILE + threadIdx.x;
  int y = blockIdx.x * TILE + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = idata[y * width + x];
  __syncthreads();
  x = blockIdx.x * TILE + threadIdx.x;
  y = blockIdx.y * TILE + threadIdx.y;
  if (x < height && y < width) odata[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

int main() {
  const int width = 1024, height = 2048;
  double *odata, *idata;
  cudaMalloc(&odata, width * height * sizeof(double));
  cudaMalloc(&idata, width * height * sizeof(double));
  transposeTile<<<dim3(height / TILE, width / TILE), dim3(TILE, TILE)>>>(odata, idata, width,
                                                                         height);
  cudaDeviceSynchronize();
  return 0;
}
