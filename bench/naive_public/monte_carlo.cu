// Estimates pi; each thread has a linear congruential generator and writes its count.
#include <cuda_runtime.h>

__global__ void pi(unsigned int* hits, unsigned int seed, int trials) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned int state = seed + id * 747796405u;
  unsigned int inside = 0;
  for (int t = 0; t < trials; t++) {
    state = state * 1664525u + 1013904223u;
    float x = (state >> 8) * (1.0 / 16777216.0);
    state = state * 1664525u + 1013904223u;
    float y = (state >> 8) * (1.0 / 16777216.0);
    if (x * x + y * y <= 1.0) inside++;
  }
  hits[id] = inside;
}

int main() {
  const int threads = 65536, trials = 64;
  unsigned int* hits;
  cudaMalloc(&hits, threads * sizeof(unsigned int));
  pi<<<threads / 256, 256>>>(hits, 42u, trials);
  cudaDeviceSynchronize();
  return 0;
}
