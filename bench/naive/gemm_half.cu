// Product of two matrices of halves, summed in float; rows on x.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void gemm_half(half* c, const half* a, const half* b, int m, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += __half2float(a[row * k + i]) * __half2float(b[i * n + col]);
  c[row * n + col] = __float2half(sum);
}

int main() {
  const int m = 1024, n = 1024, k = 1024;
  half *a, *b, *c;
  cudaMalloc(&a, m * k * sizeof(half));
  cudaMalloc(&b, k * n * sizeof(half));
  cudaMalloc(&c, m * n * sizeof(half));
  dim3 block(16, 16);
  dim3 grid((m + 15) / 16, (n + 15) / 16);
  gemm_half<<<grid, block>>>(c, a, b, m, n, k);
  cudaDeviceSynchronize();
  return 0;
}
