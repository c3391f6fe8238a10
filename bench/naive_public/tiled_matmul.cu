// The tiled product of a text book; the tile of the second matrix is read down its columns.
#include <cuda_runtime.h>

#define TILE_WIDTH 16

__global__ void tiled(float* A, float* B, float* C, int numARows, int numACols, int numBCols) {
  __shared__ float As[TILE_WIDTH][TILE_WIDTH];
  __shared__ float Bs[TILE_WIDTH][TILE_WIDTH];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE_WIDTH + ty, col = blockIdx.x * TILE_WIDTH + tx;
  float value = 0;
  for (int t = 0; t < (numACols - 1) / TILE_WIDTH + 1; ++t) {
    if (row < numARows && t * TILE_WIDTH + tx < numACols)
      As[ty][tx] = A[row * numACols + t * TILE_WIDTH + tx];
    else
      As[ty][tx] = 0;
    if (t * TILE_WIDTH + ty < numACols && col < numBCols)
      Bs[ty][tx] = B[(t * TILE_WIDTH + ty) * numBCols + col];
    else
      Bs[ty][tx] = 0;
    __syncthreads();
    for (int i = 0; i < TILE_WIDTH; ++i) value += As[ty][i] * Bs[i][tx];
    __syncthreads();
  }
  if (row < numARows && col < numBCols) C[row * numBCols + col] = value;
}

int main() {
  int numARows = 512, numACols = 640, numBCols = 768;
  float *A, *B, *C;
  cudaMalloc(&A, numARows * numACols * sizeof(float));
  cudaMalloc(&B, numACols * numBCols * sizeof(float));
  cudaMalloc(&C, numARows * numBCols * sizeof(float));
  dim3 block(TILE_WIDTH, TILE_WIDTH);
  dim3 grid((numBCols - 1) / TILE_WIDTH + 1, (numARows - 1) / TILE_WIDTH + 1);
  tiled<<<grid, block>>>(A, B, C, numARows, numACols, numBCols);
  cudaDeviceSynchronize();
  return 0;
}
