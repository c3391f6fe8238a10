// Kernels that change device variables: a counter of found elements, and a table that a first
// kernel fills for the second.
#include <cstdio>
#include <vector>

__device__ unsigned found;
__device__ float table[256];

__global__ void fill_table(float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 256) table[i] = sinf(i * scale);
}

__global__ void look_up(float* out, const unsigned char* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = table[in[i]];
  out[i] = v;
  if (v > 0.5f) atomicAdd(&found, 1u);
}

int main() {
  const int n = 20000;
  std::vector<unsigned char> host(n);
  for (int i = 0; i < n; ++i) host[i] = (i * 40503u) >> 5;
  unsigned char* in;
  float* out;
  cudaMalloc(&in, n);
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, host.data(), n, cudaMemcpyHostToDevice);
  unsigned count = 0;
  cudaMemcpyToSymbol(found, &count, sizeof count);
  fill_table<<<2, 128>>>(0.05f);
  look_up<<<(n + 127) / 128, 128>>>(out, in, n);
  cudaMemcpyFromSymbol(&count, found, sizeof count);
  printf("found %u\n", count);
  cudaFree(in);
  cudaFree(out);
}
