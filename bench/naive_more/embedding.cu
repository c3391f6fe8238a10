// Rows of a table; one thread copies one row.
#include <cuda_runtime.h>

__global__ void embedding(float* out, const int* ids, const float* table, int tokens, int dim, int rows) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= tokens) return;
  int id = ids[t] % rows;
  if (id < 0) id = 0;
  for (int j = 0; j < dim; j++) out[t * dim + j] = table[id * dim + j];
}

int main() {
  const int tokens = 8192, dim = 512, rows = 8192;
  float *out, *table;
  int* ids;
  cudaMalloc(&out, tokens * dim * sizeof(float));
  cudaMalloc(&table, rows * dim * sizeof(float));
  cudaMalloc(&ids, tokens * sizeof(int));
  embedding<<<(tokens + 127) / 128, 128>>>(out, ids, table, tokens, dim, rows);
  cudaDeviceSynchronize();
  return 0;
}
