// Cross entropy of rows of logits; one thread a row.
#include <cuda_runtime.h>

__global__ void cross_entropy(float* losses, const float* logits, const int* targets, int N, int V) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    const float* row = logits + i * V;
    float maxval = -1e30f;
    for (int v = 0; v < V; v++) {
      if (row[v] > maxval) maxval = row[v];
    }
    float sum = 0.0f;
    for (int v = 0; v < V; v++) sum += expf(row[v] - maxval);
    losses[i] = logf(sum) + maxval - row[targets[i] % V];
  }
}

int main() {
  const int N = 4096, V = 512;
  float *losses, *logits;
  int* targets;
  cudaMalloc(&losses, N * sizeof(float));
  cudaMalloc(&logits, N * V * sizeof(float));
  cudaMalloc(&targets, N * sizeof(int));
  cross_entropy<<<(N + 127) / 128, 128>>>(losses, logits, targets, N, V);
  cudaDeviceSynchronize();
  return 0;
}
