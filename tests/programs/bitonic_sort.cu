// CUDA samples style: a bitonic sort in place; the same kernel is launched many times with other
// steps.
#include <cstdio>
#include <vector>

__global__ void bitonic_step(unsigned* values, int j, int k) {
  unsigned i = threadIdx.x + blockDim.x * blockIdx.x;
  unsigned other = i ^ j;
  if (other <= i) return;
  bool ascending = (i & k) == 0;
  unsigned a = values[i], b = values[other];
  if ((a > b) == ascending) {
    values[i] = b;
    values[other] = a;
  }
}

int main() {
  const int n = 4096;
  std::vector<unsigned> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * 2654435761u;
  unsigned* values;
  cudaMalloc(&values, n * sizeof(unsigned));
  cudaMemcpy(values, host.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice);
  for (int k = 2; k <= n; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) bitonic_step<<<n / 512, 512>>>(values, j, k);
  cudaMemcpy(host.data(), values, n * sizeof(unsigned), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 1; i < n; ++i) wrong += host[i - 1] > host[i];
  printf("wrong %d median %u\n", wrong, host[n / 2]);
  cudaFree(values);
}
