// Gathers rows of 32 floats by index; one thread a row.
#include <cuda_runtime.h>

__global__ void gather(float* out, const float* table, const int* index, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int d = 0; d < 32; ++d) out[i * 32 + d] = table[index[i] * 32 + d];
}

int main() {
  const int n = 65536, entries = 16384;
  float *out, *table;
  int* index;
  cudaMalloc(&out, n * 32 * sizeof(float));
  cudaMalloc(&table, entries * 32 * sizeof(float));
  cudaMalloc(&index, n * sizeof(int));
  gather<<<(n + 255) / 256, 256>>>(out, table, index, n);
  cudaDeviceSynchronize();
  return 0;
}
