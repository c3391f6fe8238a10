// Merges two sorted arrays: each element finds its rank in the other one by bisection.
#include <cuda_runtime.h>

__device__ int rank_of(const int* data, int n, int value, bool right) {
  int low = 0, high = n;
  while (low < high) {
    int mid = (low + high) / 2;
    bool before = right ? data[mid] <= value : data[mid] < value;
    if (before)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

__global__ void merge(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i + rank_of(b, n, a[i], false)] = a[i];
  out[i + rank_of(a, n, b[i], true)] = b[i];
}

int main() {
  const int n = 1 << 19;
  int* h = (int*)malloc(n * sizeof(int));
  for (int i = 0; i < n; i++) h[i] = 2 * i;
  int *a, *b, *out;
  cudaMalloc(&a, n * sizeof(int));
  cudaMalloc(&b, n * sizeof(int));
  cudaMalloc(&out, 2 * n * sizeof(int));
  cudaMemcpy(a, h, n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(b, h, n * sizeof(int), cudaMemcpyHostToDevice);
  merge<<<(n + 255) / 256, 256>>>(a, b, out, n);
  cudaDeviceSynchronize();
  return 0;
}
