// Counts the equal elements by one atomic for each; int, early return, a stride loop.
#include <cuda_runtime.h>

__global__ void count_equal(const int* a, const int* b, int* count, int n) {
  int start = blockIdx.x * blockDim.x + threadIdx.x;
  if (start >= n) return;
  for (int i = start; i < n; i += gridDim.x * blockDim.x)
    if (a[i] == b[i]) atomicAdd(count, 1);
}

int main() {
  const int n = 1 << 20;
  int *a, *b, *count;
  cudaMalloc(&a, n * sizeof(int));
  cudaMalloc(&b, n * sizeof(int));
  cudaMalloc(&count, sizeof(int));
  cudaMemset(count, 0, sizeof(int));
  count_equal<<<128, 256>>>(a, b, count, n);
  cudaDeviceSynchronize();
  return 0;
}
