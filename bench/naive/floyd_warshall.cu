// One step of Floyd and Warshall's shortest paths; rows on x.
#include <cuda_runtime.h>

__global__ void floyd_warshall(float* distance, const float* through_row,
                               const float* through_column, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n) return;
  float candidate = through_column[i] + through_row[j];
  if (candidate < distance[i * n + j]) distance[i * n + j] = candidate;
}

int main() {
  const int n = 2048;
  float *distance, *through_row, *through_column;
  cudaMalloc(&distance, n * n * sizeof(float));
  cudaMalloc(&through_row, n * sizeof(float));
  cudaMalloc(&through_column, n * sizeof(float));
  dim3 block(16, 16);
  dim3 grid((n + 15) / 16, (n + 15) / 16);
  floyd_warshall<<<grid, block>>>(distance, through_row, through_column, n);
  cudaDeviceSynchronize();
  return 0;
}
